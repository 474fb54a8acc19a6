"""A replay of an approximate query tells what share of the exact result it showed; nothing else does."""

from skyband.files.definitions import load_definitions
from skyband.files.rows import open_rows
from skyband.local.replay import Replay, prepare
from skyband.model.query import Algorithm

DEFINITIONS = load_definitions("""\
group:
  name: g
  retention: 100s
  pane: 1s
  shards: 2
  streams:
    - {name: a, hi: 1, repeat_after: 100s}
    - {name: b, hi: 1, repeat_after: 100s}
queries:
  - {name: top, k: 5, score: a + b, window: {size: 100s, slide: 5s}}
""")
ROWS = [("ab"[i % 2], f"o{i * 7 % 3001}", i * 100_000, (i * 37 % 101) / 101) for i in range(9_000)]


def run(algorithm: Algorithm) -> Replay:
    definitions = prepare(DEFINITIONS, algorithm=algorithm)
    running = Replay(definitions, open_rows(definitions.group, ROWS))
    assert len(list(running)) > 100
    return running


def test_an_approximate_query_is_told_with_its_recall() -> None:
    found = run(Algorithm.EAA_TAIL).summary.approximations["top"]
    assert found.due > 100
    assert found.shown <= found.due
    assert found.error == 0.05
    assert "of the exact rows shown" in found.describe()


def test_an_exact_query_has_none() -> None:
    assert run(Algorithm.EAA_RELAXED).summary.approximations == {}
