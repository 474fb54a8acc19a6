"""Compiles every kernel once: ``python -m skyband.local.warm``.

numba keeps what it compiles beside the sources (or in NUMBA_CACHE_DIR): an image or a machine warmed so starts within
a second or two, and no first result waits a minute for a compiler. Each step is a tiny replay that takes another way
through the pipeline; in a process where all is compiled it takes a few milliseconds.

Where a compiled kernel is kept depends on the types of its arguments alone: these steps need to meet each kernel, not
each of its branches. `tests/local/test_warm.py` holds them to it.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["steps", "warm"]

_S = 1_000_000
_AGGREGATES = ("best", "latest", "first", "sum", "count", "max", "min")

Row = tuple[str, str, int, float]
Step = tuple[str, Callable[[], object]]


def warm(write: Callable[[str], object] = sys.stderr.write) -> None:
    """Run every step, and write a line about each: what it was, and its seconds."""
    first = time.perf_counter()
    for what, run in steps():
        begun = time.perf_counter()
        run()
        write(f"{what:<40}{time.perf_counter() - begun:6.1f} s\n")
    write(f"{'warm after':<40}{time.perf_counter() - first:6.1f} s\n")


def steps() -> Iterator[Step]:
    """Yield what there is to do: a name, and the function that does it."""
    yield "load the package", _load
    yield "time windows, every aggregate", _time_windows
    yield "objects seen once, by the skyband", _seen_once
    yield "records as objects", _records
    yield "count windows", _count_windows
    yield "many objects, a stream far ahead", _many
    yield "what keeps no window, and lists", _forgetting
    yield "more objects than a sample holds", _oversampled
    yield "sketches", _sketches
    yield "generators", _generators


def _load() -> None:
    import skyband.files.definitions
    import skyband.local.replay  # noqa: F401


def _time_windows() -> None:
    options = {"lo": 0, "hi": 9, "max_delay": "2s"}
    streams = [
        {"name": name, "aggregate": aggregate, **options}
        for name, aggregate in zip("abcdefg", _AGGREGATES, strict=True)
    ]
    score = "a + b - c + max(d, e) + sqrt(f) * exp(g)"
    queries = [
        {"name": "all", "k": 3, "score": score, "require": ["a"], "candidates": 2},
        {"name": "view", "k": 3, "score": "a + f", "algorithm": "view"},
        {"name": "fixed", "k": 1, "score": "a + f", "algorithm": "two-tier"},
    ]
    # Every ninth row is late, every eleventh out of range.
    rows = [
        ("abcdefg"[i % 7], f"o{i % 13}", (i - (5 if i % 9 == 0 else 0)) * _S // 4, float(i % 11)) for i in range(300)
    ]
    _replay(streams, queries, rows, shards=2)


def _seen_once() -> None:
    stream = {"name": "a", "attributes": [{"name": "x"}], "repeat_after": "never"}
    queries = [{"name": name, "k": k, "score": "x", "algorithm": "skyband"} for name, k in (("one", 1), ("two", 2))]
    _replay([stream], queries, [("a", f"o{i}", i * _S // 4, float(i % 7)) for i in range(200)])


def _records() -> None:
    stream = {"name": "a", "attributes": [{"name": "x"}, {"name": "y"}], "identity": "row"}
    queries = [{"name": name, "k": 2, "score": "x + y", "algorithm": name} for name in ("view", "skyband")]
    _replay([stream], queries, [("a", f"o{i % 9}", i * _S // 4, float(i % 7), float(i % 5)) for i in range(200)])


def _count_windows() -> None:
    streams = [{"name": "a", "lo": 0, "hi": 9}, {"name": "b", "lo": 0, "hi": 9, "aggregate": "sum"}]
    window = {"count": 20, "slide": 3}
    queries = [
        {"name": name, "k": 2, "score": "a + b", "window": window, "algorithm": name} for name in ("view", "auto")
    ]
    _replay(streams, queries, [("ab"[i % 2], f"o{i % 9}", i * _S // 4, float(i % 7)) for i in range(100)])


def _many() -> None:
    """Grow and shrink what holds objects, entries and waiting rows; run views short of members."""
    streams = [{"name": name, "lo": 0, "hi": 9, "repeat_after": "1h", "max_delay": "1s"} for name in "ab"]
    window = {"size": "2s", "slide": "1s"}
    queries: list[dict[str, Any]] = [{"name": "two-tier", "k": 5, "score": "a + b", "algorithm": "two-tier"}]
    queries.append({"name": "view", "k": 5, "score": "a + b", "algorithm": "view", "window": window})
    # What comes is worse than what was: members leave and nothing takes their place.
    ahead = [("a", f"a rather long id {i * 7919 % 4_001}", (i + i % 3) * 2_000, 9 - i / 600) for i in range(5_000)]
    behind = [("b", object_id, event_time, value) for _, object_id, event_time, value in ahead[::3]]
    _replay(streams, queries, [*ahead, *behind], shards=2, batch_rows=500)


def _forgetting() -> None:
    """Ask the same of all that forgets, and of sorted lists; with rows that are late, and objects that come again."""
    streams = [
        {"name": name, "lo": 0, "hi": 9, "repeat_after": "never", "max_delay": "2s", "late": "apply"} for name in "ab"
    ]
    names = ("eaa", "eaa-relaxed", "eaa-expected", "eaa-tail", "sla")
    queries = [
        {"name": name, "k": 2, "score": "a + b", "algorithm": name, "require": ["a"], "candidates": 2} for name in names
    ]
    rows = [("ab"[i % 2], f"o{i // 3}", (i - 150 * (i % 9 == 4)) * _S // 50, float(i % 7)) for i in range(1_500)]
    _replay(streams, queries, rows)


def _oversampled() -> None:
    streams = [{"name": name, "lo": 0, "hi": 9, "repeat_after": "never"} for name in "ab"]
    rows = [("ab"[i % 2], f"o{i // 2 if i % 5 else -i}", i * 1_000, float(i % 7)) for i in range(6_000)]
    _replay(streams, [{"name": "tail", "k": 2, "score": "a + b", "algorithm": "eaa-tail"}], rows, batch_rows=6_000)


def _sketches() -> None:
    import numpy as np

    from skyband.sketch import CountsOfCounts, GroupSketch, SecondMoment, SlidingFM
    from skyband.structures.coordinated_sample import CoordinatedSample
    from skyband.structures.window_store import Rows

    number = np.arange(400)
    times, hashes = number * _S // 10, number * 2**40
    rows = Rows((number % 2).astype(np.int32), times, np.zeros(0, np.uint8), times, hashes, np.ones((400, 1)))
    sketch = GroupSketch(2, 1, 10 * _S, _S)
    expiring = SecondMoment(2, 10 * _S, _S), CoordinatedSample(2, 1, 10 * _S, level=1), CountsOfCounts(2, _S), sketch
    for each in (SlidingFM(2), *expiring):
        each.add(rows, 0, 400)
    for each in expiring:
        each.expire(30 * _S)
        each.expire(45 * _S)
    sketch.merge(GroupSketch.from_bytes(sketch.to_bytes()))
    sketch.statistics(40 * _S)
    expiring[1].objects(46 * _S, 2 * _S)


def _generators() -> None:
    from skyband.generate.attribute_streams import distinct_objects

    distinct_objects(1, 100)


def _replay(
    streams: list[dict[str, Any]],
    queries: list[dict[str, Any]],
    rows: list[tuple[Any, ...]],
    *,
    shards: int = 1,
    batch_rows: int = 70,
) -> None:
    from skyband.files.definitions import load_definitions
    from skyband.local.replay import replay

    window = {"size": "10s", "slide": "2s"}
    asked: list[Mapping[str, Any]] = [{"window": window, **query} for query in queries]
    definitions = load_definitions({"group": {"name": "warm", "streams": streams}, "queries": asked})
    for _ in replay(definitions, rows, shards=shards, batch_rows=batch_rows):
        pass


if __name__ == "__main__":
    warm()
