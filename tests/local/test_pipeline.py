"""The pipeline as it runs: queries that come, change and go, sources that are silent, what control says of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from skyband.align.stage import AlignSettings
from skyband.control.commands import DeleteQuery, PauseQuery, ResumeQuery, UpdateQuery
from skyband.errors import AlreadyExistsError, DefinitionError
from skyband.files.definitions import load_definitions
from skyband.files.rows import open_rows
from skyband.local.pipeline import LocalPipeline, finished_input
from skyband.local.replay import as_document
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryLog
from skyband.model.definitions import Definitions
from skyband.model.query import Query, Window
from skyband.model.result import Result
from skyband.model.stream import IdleThen
from tests import lockstep
from tests.local.replays import Rows, workload
from tests.oracle import Row, oracle_results
from tests.workloads import source_rows

S = 1_000_000
START = 1_700_000_000 * S
FACTORY = load_definitions("""\
group:
  name: g
  retention: 1m
  streams: [{name: a, lo: 0, hi: 100}, {name: b, lo: 0, hi: 100}]
queries:
  - {name: q, k: 3, score: a + b, window: {size: 10s, slide: 2s}}
""")
LATER = Query(name="later", k=2, score="2*a + b", window=Window(20 * S, 5 * S))


class Running:
    """A pipeline with a clock in the test's hand; `feed` and `tick` let it work until nothing is left to do."""

    def __init__(self, definitions: Definitions, places: Sequence[tuple[int, int]] = ((0, 0), (1, 0))) -> None:
        self.group = definitions.group
        self.clock = ManualClock(START)
        align = AlignSettings(flush_interval_us=0)
        self.pipeline = LocalPipeline(definitions, MemoryLog(self.clock), self.clock, places, align=align)
        self.results: list[Result] = []
        self._fed = Counter[tuple[int, int]]()

    def feed(self, place: tuple[int, int], *rows: Row) -> None:
        """Append rows to a source partition, and work."""
        first = self._fed[place]
        self._fed[place] += len(rows)
        width = len(self.group.streams[place[0]].attributes)
        self.pipeline.feed(place, first, first + len(rows), source_rows(rows, width, first))
        self.work()

    def tick(self, seconds: float = 1.0) -> None:
        """Let time pass, and work."""
        self.clock.advance(int(seconds * S))
        self.work()

    def finish(self) -> None:
        """End all input, and work."""
        self.pipeline.finish()
        self.work()

    def work(self) -> None:
        """Step until nothing is left to do."""
        while self.pipeline.step():
            pass
        self.results += self.pipeline.results()

    def headline(self, query: str = "q") -> str:
        """Return the first line of what control says of a query."""
        return self.pipeline.control.describe("g", query).headline

    def words(self, query: str = "q") -> dict[str, str]:
        """Return the other lines."""
        return dict(self.pipeline.control.describe("g", query).lines)

    def of(self, query: str) -> list[Result]:
        """Return the results of one query so far."""
        return [result for result in self.results if result.query == query]


def ends(results: Sequence[Result]) -> list[int]:
    return [(result.window_end - START) // S for result in results]


def shown(result: Result) -> list[tuple[str, float]]:
    return [(row.object_id, row.score) for row in result.rows]


def row(object_id: str, second: float, value: float) -> Row:
    return Row(object_id, START + int(second * S), (value,))


@pytest.fixture
def running() -> Running:
    return Running(FACTORY)


# --- queries that come, change and go


def test_a_query_made_while_rows_flow_is_answered_at_once_from_the_whole_window(running: Running) -> None:
    running.feed((0, 0), row("x", 0, 5.0), row("y", 9, 7.0), row("x", 18, 1.0))
    running.feed((1, 0), row("x", 1, 2.0), row("y", 18, 1.0))
    assert ends(running.results)[-1] == 18
    running.pipeline.create_query(LATER)
    running.work()
    assert running.of("later") == []
    for place in ((0, 0), (1, 0)):
        running.feed(place, row("z", 21, 3.0))
    first = running.of("later")[0]
    assert (ends([first]), first.window_start) == ([20], START)
    assert shown(first) == [("y", 15.0), ("x", 12.0)]


@pytest.mark.parametrize("seed", range(1, 10))
def test_queries_made_at_any_moment_then_say_what_they_would_have_said_from_the_beginning(seed: int) -> None:
    definitions, rows = workload(seed, 120)
    definitions = finished_input(definitions)
    expected = {query.name: results_of(definitions, query, rows) for query in definitions.queries}
    running = Running(replace(definitions, queries=()), sorted(rows))
    chunks = mixed({place: [part[i : i + 7] for i in range(0, len(part), 7)] for place, part in rows.items()}, seed)
    waiting = {1 + 3 * number: query for number, query in enumerate(definitions.queries)}
    for number, (place, part) in enumerate(chunks):
        if number in waiting:
            running.pipeline.create_query(waiting.pop(number))
        running.feed(place, *part)
    for query in waiting.values():
        running.pipeline.create_query(query)
    running.finish()
    for name, full in expected.items():
        got = [dict(as_document(result)) for result in running.of(name)]
        assert got
        begun = next(i for i, result in enumerate(full) if result["window_end"] == got[0]["window_end"])
        # Rejected rows can move time past the last accepted one: what is evaluated there, replay leaves out.
        lockstep.assert_equal(full[begun:], got[: len(full) - begun], rows)


def mixed(parts: Mapping[tuple[int, int], list[list[Row]]], seed: int) -> list[tuple[tuple[int, int], list[Row]]]:
    """Return all chunks in a seeded order that keeps the order of each partition."""
    places = [place for place, chunks in parts.items() for _ in chunks]
    Random(seed).shuffle(places)
    waiting = {place: iter(chunks) for place, chunks in parts.items()}
    return [(place, next(waiting[place])) for place in places]


def results_of(definitions: Definitions, query: Query, rows: Rows) -> list[dict[str, Any]]:
    return oracle_results(definitions.group, [query], rows)


def test_a_paused_query_says_nothing_until_it_is_resumed_and_then_all_of_its_window(running: Running) -> None:
    both_feed(running, {"x": 1.0}, 0, 5)
    running.pipeline.control.execute(PauseQuery("g", "q"))
    both_feed(running, {"y": 2.0}, 6, 11)
    assert ends(running.results) == [2, 4]
    running.pipeline.control.execute(ResumeQuery("g", "q"))
    both_feed(running, {"z": 3.0}, 12, 13)
    assert ends(running.results) == [2, 4, 12]
    assert [name for name, _ in shown(running.results[-1])] == ["y", "x"]


def both_feed(running: Running, values: Mapping[str, float], *seconds: int) -> None:
    for second in seconds:
        for place in ((0, 0), (1, 0)):
            running.feed(place, *(row(name, second, value) for name, value in values.items()))


def test_a_new_k_holds_from_the_next_evaluation_on(running: Running) -> None:
    both_feed(running, {"x": 1.0, "y": 2.0, "z": 3.0, "w": 4.0}, 0, 5)
    query = replace(FACTORY.queries[0], k=1)
    running.pipeline.control.execute(UpdateQuery("g", query, mask=("k",)))
    both_feed(running, {"x": 1.0}, 6, 9)
    running.pipeline.control.execute(UpdateQuery("g", replace(query, k=4), mask=("k",)))
    both_feed(running, {"x": 1.0}, 10, 11)
    assert [len(result.rows) for result in running.results] == [3, 3, 1, 1, 4]
    assert [result.revision for result in running.results] == [1, 1, 2, 2, 3]


def test_a_deleted_query_is_silent_and_unknown_and_its_name_is_free(running: Running) -> None:
    both_feed(running, {"x": 1.0}, 0, 3)
    running.pipeline.control.execute(DeleteQuery("g", "q"))
    both_feed(running, {"x": 1.0}, 4, 7)
    assert ends(running.results) == [2]
    running.pipeline.create_query(replace(FACTORY.queries[0], k=1))
    both_feed(running, {"x": 1.0}, 8, 11)
    assert ends(running.results) == [2, 8, 10]
    assert len({result.uid for result in running.results}) == 2


def test_a_query_that_is_there_or_cannot_be_answered_is_refused(running: Running) -> None:
    with pytest.raises(AlreadyExistsError, match="'q'"):
        running.pipeline.create_query(FACTORY.queries[0])
    with pytest.raises(DefinitionError, match="no_such"):
        running.pipeline.create_query(replace(LATER, score="no_such"))
    with pytest.raises(DefinitionError, match="retention"):
        running.pipeline.create_query(replace(LATER, window=Window(61 * S, S)))
    both_feed(running, {"x": 1.0}, 0, 3)
    assert ends(running.results) == [2]


# --- sources that are silent, finished, or many


def test_a_silent_stream_holds_results_until_it_is_idle_and_the_last_one_until_all_are(running: Running) -> None:
    running.feed((0, 0), *(row("x", second, 1.0) for second in range(8)))
    for _ in range(9):
        running.tick()
        assert running.results == []
    running.tick()
    assert ends(running.results) == [2, 4, 6]
    running.tick()
    assert ends(running.results) == [2, 4, 6, 8]


def test_a_stream_that_holds_by_definition_is_waited_for_however_long() -> None:
    streams = tuple(replace(stream, idle_then=IdleThen.HOLD) for stream in FACTORY.group.streams)
    running = Running(replace(FACTORY, group=replace(FACTORY.group, streams=streams)))
    running.feed((0, 0), *(row("x", second, 1.0) for second in range(8)))
    running.tick(3600)
    assert running.results == []
    running.feed((1, 0), row("y", 5, 1.0))
    assert ends(running.results) == [2, 4]


def test_a_finished_partition_is_not_waited_for(running: Running) -> None:
    running.feed((0, 0), *(row("x", second, 1.0) for second in range(8)))
    running.pipeline.finish([(1, 0)])
    running.work()
    assert ends(running.results) == [2, 4, 6]
    running.finish()
    assert ends(running.results) == [2, 4, 6, 8]


def test_every_partition_of_a_stream_is_waited_for() -> None:
    running = Running(FACTORY, [(0, 0), (0, 1), (0, 2), (1, 0)])
    for place in ((0, 0), (0, 1), (1, 0)):
        running.feed(place, row("x", 0, 1.0), row("x", 9, 1.0))
    assert running.results == []
    running.feed((0, 2), row("y", 5, 9.0))
    assert ends(running.results) == [2, 4]
    running.finish()
    assert shown(running.results[-1]) == [("y", 9.0), ("x", 2.0)]


def test_shards_give_the_same_results_as_one() -> None:
    seen = []
    for shards in (1, 5):
        running = Running(replace(FACTORY, group=replace(FACTORY.group, shards=shards)))
        both_feed(running, {f"o{i}": float(i % 7) for i in range(30)}, 0, 3, 8, 9)
        running.finish()
        seen.append([as_document(result) for result in running.results])
    assert seen[0] == seen[1] != []


# --- what control says of it


def test_control_says_how_a_running_query_is_doing(running: Running) -> None:
    assert running.headline().startswith("q  STARTING")
    running.tick()
    assert running.headline() == "q  ACTIVE, no data yet"
    assert "a" in running.words()["why"]
    both_feed(running, {"x": 1.0}, 0, 1)
    running.tick()
    assert running.headline() == "q  ACTIVE, waiting for the first result"
    both_feed(running, {"x": 1.0}, 2, 3)
    running.tick()
    assert running.headline().startswith("q  ACTIVE, up to date")
    running.pipeline.control.execute(PauseQuery("g", "q"))
    running.tick(2)
    assert running.headline().startswith("q  PAUSED since 22:13:23Z (2.0 s ago)")
    assert running.words()["do"] == "skyband queries resume g/q"
    running.pipeline.control.execute(ResumeQuery("g", "q"))
    running.tick()
    assert running.headline().startswith("q  ACTIVE")


def test_control_says_what_a_query_waits_for(running: Running) -> None:
    both_feed(running, {"x": 1.0}, 0, 1)
    running.feed((0, 0), *(row("x", second, 1.0) for second in range(1, 60)))
    running.tick()
    assert "waiting" in running.headline()
    assert "b" in running.words()["why"]
    status = running.pipeline.control.status("g", "q")
    assert [shard.holder and (shard.holder.stream, shard.holder.partition) for shard in status.shards] == [("b", 0)]


def test_control_tells_rows_that_wait_from_rows_that_have_not_come(running: Running) -> None:
    running.feed((0, 0), *(row("x", second, 1.0) for second in range(60)))
    running.tick()
    assert "no data yet" not in running.headline()
    assert "waiting" in running.headline()


def test_control_says_when_every_record_is_rejected_and_why(running: Running) -> None:
    running.feed((0, 0), *(row("x", second, -1.0) for second in range(5)))
    running.feed((1, 0), *(row("", second, 1.0) for second in range(5)))
    running.tick()
    assert running.pipeline.control.status("g", "q").rejected == (("missing_id", 5), ("out_of_range", 5))
    assert "reject" in running.pipeline.control.describe("g", "q").text()


def test_control_says_when_all_is_idle(running: Running) -> None:
    both_feed(running, {"x": 1.0}, 0, 1, 2, 3)
    running.tick(11)
    running.tick(60)
    assert "IDLE" in running.headline()


def test_control_counts_what_the_shards_have_read() -> None:
    running = Running(replace(FACTORY, group=replace(FACTORY.group, shards=3)))
    both_feed(running, {f"o{i}": 1.0 for i in range(10)}, 0, 3)
    running.tick()
    status = running.pipeline.control.status("g", "q")
    assert (status.rows_in, status.rows_late, status.objects, status.evaluations) == (40, 0, 10, 1)
    assert status.last_window_end == START + 2 * S
    assert status.state_bytes > 0


def test_control_explains_the_plan(running: Running) -> None:
    text = running.pipeline.control.explain("g", "q")
    assert text.startswith("q: the 3 objects with the highest a + b")
    assert "plan " in text
    running.pipeline.create_query(LATER)
    assert running.pipeline.control.explain("g", "later").startswith("later: the 2 objects with the highest 2*a + b")


# --- what is not used


def test_dead_letters_say_where_and_why(running: Running) -> None:
    bad = (row("", 1, 1.0), row("x", 1, float("nan")), row("x", 1, 101.0), row("y", 1, 4.0))
    running.feed((1, 0), row("y", 0, 1.0), *bad)
    letters = running.pipeline.dead_letters()
    assert [(letter.stream, letter.offset, letter.reason.label) for letter in letters] == [
        ("b", 1, "missing_id"),
        ("b", 2, "not_finite"),
        ("b", 3, "out_of_range"),
    ]
    assert "101" in letters[2].error
    assert running.pipeline.dead_letters() == []
    align, (shard,) = running.pipeline.statistics()
    assert sum(counts.accepted for counts in align.counts) == 2
    assert shard.objects in (0, 1)


def test_rows_with_a_reason_from_their_reader_become_dead_letters_and_keep_their_offsets(running: Running) -> None:
    given = [
        {"stream": "a", "object_id": "x", "event_time": START, "value": 1},
        {"stream": "a", "object_id": "x", "event_time": "soon", "value": 1},
        {"stream": "a", "object_id": "x", "event_time": START + 3 * S, "value": 2},
    ]
    for chunk in open_rows(FACTORY.group, given):
        running.pipeline.feed((chunk.stream, chunk.partition), chunk.from_offset, chunk.to_offset, chunk.rows)
    running.work()
    (letter,) = running.pipeline.dead_letters()
    assert (letter.reason.label, letter.offset) == ("bad_time", 1)
    assert "soon" in letter.error
    running.finish()
    assert ends(running.results) == [2, 4]


def test_a_pipeline_can_be_closed_at_any_moment(running: Running) -> None:
    running.feed((0, 0), row("x", 0, 1.0))
    running.pipeline.close()
    Running(FACTORY).pipeline.close()
