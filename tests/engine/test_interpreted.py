"""The engine gives the same bits with its kernels compiled and interpreted, and no arithmetic that warns."""

import hashlib

from tests.engine.pure_pipeline import run
from tests.engine.variants import falling_leaders, fitting, siblings
from tests.interpreted import assert_same_interpreted, print_digest
from tests.workloads import Seeded, seeded

# Between them: count windows, row identity, sums, lowest first, gaps, all algorithms.
SEEDS = (1, 7, 12, 201, 286, 313)


def digest() -> str:
    """Return a hash of all results of a few small workloads, to the last bit."""
    found = hashlib.sha256()
    for group, queries, rows in (*(seeded(seed, 150) for seed in SEEDS), falling_leaders(600)):
        asked = [query for _, query in fitting(group, [s for q in queries for s in siblings(Seeded(1), group, q, 1)])]
        shards = 1 if any(query.window.in_rows for query in asked) else 2
        for result in run(group, asked, rows, shards=shards, batch_rows=17):
            found.update(repr((result["query"], result["window_end"], result["rows"])).encode())
    return found.hexdigest()


def test_compiled_and_interpreted_kernels_give_the_same_results() -> None:
    assert_same_interpreted(__file__)


if __name__ == "__main__":
    print_digest(digest)
