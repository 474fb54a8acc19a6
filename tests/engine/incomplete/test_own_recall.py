"""An approximate ranking measures its recall on a sample, and is right about it."""

import numpy as np
import pytest

from skyband.engine.incomplete import own_recall as module
from skyband.engine.incomplete.bounds import ask as ask_of
from skyband.engine.incomplete.eaa_expected import EaaExpected
from skyband.engine.incomplete.eaa_relaxed import EaaRelaxed
from skyband.engine.incomplete.own_recall import OwnRecall
from tests.engine.incomplete.distinct import asked, distinct_rows, measure
from tests.engine.incomplete.driving import ask, drive


def recall_of_the_exact(size: int, rows: int, alpha: float) -> OwnRecall:
    """Return what is measured of an exact ranking."""
    bound, group = asked(size, 50, 10)
    ranking, own = EaaRelaxed(bound, group), OwnRecall(ask_of(bound, group), bound.score.stack_size)
    columns = distinct_rows(3, rows, alpha)
    for end in range(50, rows + 1, 50):
        own.take(columns, end - 50, end, end - size, end - 50)
        drive(ranking, columns, end - 50, end, end - size, 50)
        ranking._set.pass_to(end - size)
        own.compare(ranking.objects, ranking._set.sweep(10), 10, end - size)
        own._check()
    return own


def test_an_exact_ranking_shows_all_that_is_due() -> None:
    own = recall_of_the_exact(1_000, 5_000, 0.5)
    # Everything is in the sample: each evaluation has ten.
    assert own.total[:2] == (1_000, 1_000)
    assert 100 < own.total.objects < 1_000
    assert own.share == 1.0


def test_the_sample_stays_small_and_its_due_are_a_share_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_OBJECTS", 200)
    own = recall_of_the_exact(1_000, 20_000, 0.5)
    assert own.objects <= 200
    assert own.share <= 0.25
    assert own.total.shown == own.total.due
    assert 0.4 * own.share < own.total.due / 4_000 < 2.5 * own.share + 0.05


def test_what_is_measured_agrees_with_what_is_missed() -> None:
    bound, group = asked(1_000, 50, 10)
    exact, ranking = EaaRelaxed(bound, group), EaaExpected(bound, group)
    found = measure(exact, ranking, distinct_rows(4, 12_000, 0.2, recent=300), 1_000, 50, 10)
    measured = ranking.approximation
    assert measured is not None
    within = measured.interval()
    assert within is not None
    assert within[0] - 0.03 <= found.precision <= within[1] + 0.03
    assert found.precision < 0.95


def test_ties_are_due_by_their_ids() -> None:
    bound, group = asked(100, 10, 3)
    ranking, own = EaaRelaxed(bound, group), OwnRecall(ask_of(bound, group), bound.score.stack_size)
    rows = distinct_rows(9, 400, 0.5)
    rows = rows._replace(values=np.full_like(rows.values, 0.5))
    for end in range(10, 401, 10):
        own.take(rows, end - 10, end, end - 100, end - 10)
        drive(ranking, rows, end - 10, end, end - 100, 10)
        ask(ranking, end, 100, 3)
        counted = own.compare(ranking.objects, ranking._set.sweep(3), 3, end - 100)
        assert counted[:2] == (3, 3)
