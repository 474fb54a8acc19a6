"""The rankings that forget give the same bits with their kernels compiled and interpreted, and warn of nothing."""

import hashlib

from skyband.engine.incomplete.eaa import EaaStrict
from skyband.engine.incomplete.eaa_expected import EaaExpected
from skyband.engine.incomplete.eaa_relaxed import EaaRelaxed
from skyband.engine.incomplete.eaa_tail import EaaTail
from skyband.engine.incomplete.options import ApproximationOptions
from skyband.model.binding import bind
from tests.engine.incomplete.distinct import asked, distinct_rows
from tests.engine.incomplete.driving import ask, columns, drive, evaluations, shown, steady, ticks
from tests.interpreted import assert_same_interpreted, print_digest
from tests.oracle import accepted


def digest() -> str:
    """Return a hash of all that a few small workloads show, to the last bit."""
    found = hashlib.sha256()
    for seed in range(12):
        group, query, partitions = steady(seed, 60)
        seen = accepted(group, partitions)
        rows, (size, _) = columns(group, seen), ticks(group, query)
        for kind in (EaaStrict, EaaRelaxed):
            ranking, before = kind(bind(group, query), group), 0
            for stop, end, _ in evaluations(group, query, seen):
                before = drive(ranking, rows, before, stop, end - size, 5)
                found.update(repr(shown(ranking, ask(ranking, end, size, query.k))).encode())
    bound, group = asked(150, 15, 5)
    rows = distinct_rows(2, 900, 0.4)
    for kind in (EaaExpected, EaaTail):
        ranking = kind(bound, group, ApproximationOptions(max_error=0.2))
        for end in range(15, 901, 15):
            drive(ranking, rows, end - 15, end, end - 150, 7)
            found.update(
                repr((shown(ranking, ask(ranking, end, 150, 5)), ranking.held, ranking.approximation)).encode()
            )
        assert ranking.epsilon < 0.3
        assert not ranking.unknown_patterns
    return found.hexdigest()


def test_compiled_and_interpreted_kernels_give_the_same_results() -> None:
    assert_same_interpreted(__file__)


if __name__ == "__main__":
    print_digest(digest)
