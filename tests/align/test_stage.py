"""The loop of align over a log: what it reads, when it writes, and that no crash shows."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyband.align.notes import start_of
from skyband.align.source import CATALOG_KEY, SourceKey, SourceStart
from skyband.align.stage import AlignSettings, AlignStage
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.errors import CapacityError, LogError
from skyband.log.clock import ManualClock
from skyband.log.record_log import Committed, Position
from skyband.model.catalog import QueryChange
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.query import Query, QueryState, Window
from skyband.model.source_rows import DeadLetter, Reason
from skyband.model.stream import Attribute, Stream
from tests.align.fake_log import FakeLog
from tests.align.reference import Aligned, Row, rows_of, sections, source_rows

S = 1_000_000
GROUP = Group(
    name="factory",
    streams=tuple(
        Stream(name=name, attributes=(Attribute(name=name, hi=100),), max_delay_us=delay, idle_after_us=10 * S)
        for name, delay in (("temperature", 2), ("vibration", 0))
    ),
    retention_us=60 * S,
    max_drift_us=10,
)
TOPIC = "aligned.factory.1"
SOURCES = {
    CATALOG_KEY: Position("catalog", 0),
    (0, 0): Position("temperatures", 0),
    (0, 1): Position("temperatures", 1),
    (1, 0): Position("vibrations", 0),
}


def new_log(shards: int = 1) -> FakeLog:
    """Return a log with all topics, empty."""
    return FakeLog({"catalog": 1, "temperatures": 2, "vibrations": 1, "dead-letters": 1, TOPIC: shards})


def new_stage(
    log: FakeLog,
    clock: ManualClock | None = None,
    shards: int = 1,
    starts: Mapping[SourceKey, SourceStart] | None = None,
    **settings: int,
) -> AlignStage:
    """Return a stage over all sources."""
    return AlignStage(
        log,
        clock or ManualClock(),
        GROUP,
        1,
        shards,
        SOURCES,
        starts=starts,
        settings=AlignSettings(**settings),  # type: ignore[arg-type]
    )


def put(log: FakeLog, key: SourceKey, *rows: Row) -> None:
    """Append rows as one record that spans them."""
    log.put(SOURCES[key], source_rows(rows), span=rows[-1].offset - rows[0].offset + 1, offset=rows[0].offset)


def batches(log: FakeLog, shards: int = 1) -> list[AlignedBatch]:
    """Return all aligned batches, shard after shard."""
    values = [value for shard in range(shards) for value in log.values(TOPIC, shard)]
    assert all(isinstance(value, AlignedBatch) for value in values)
    return values  # type: ignore[return-value]


def change(group: str, uid: str) -> QueryChange:
    """Return a new query of `group`."""
    query = Query(name=uid, k=1, score="temperature", window=Window(S, S))
    return QueryChange(uid=uid, revision=1, group=group, query=query, state=QueryState.ACTIVE)


def test_offsets_are_committed_only_behind_the_flush_of_what_they_brought() -> None:
    log = new_log()
    put(log, (0, 0), Row(0, 1), Row(1, 2, b""))
    stage = new_stage(log)
    assert stage.step()
    assert log.journal == []
    assert stage.flush()
    assert log.journal == ["send dead-letters", f"send {TOPIC}", "flush", "commit"]
    assert log.committed == {SOURCES[0, 0]: 2}
    assert not stage.step()


def test_commits_wait_for_their_interval_and_batches_do_not() -> None:
    log, clock = new_log(), ManualClock()
    stage = new_stage(log, clock, batch_rows=1, commit_interval_us=500)
    put(log, (0, 0), Row(0, 1))
    stage.step()
    assert log.journal == [f"send {TOPIC}", "flush", "commit"]
    put(log, (0, 0), Row(1, 2))
    clock.advance(499)
    stage.step()
    stage.step()
    assert log.journal[3:] == [f"send {TOPIC}"]
    clock.advance(1)
    stage.step()
    assert log.journal[4:] == ["flush", "commit"]
    assert log.committed == {SOURCES[0, 0]: 2}
    put(log, (0, 0), Row(2, 3))
    stage.step()
    stage.close()
    assert log.committed == {SOURCES[0, 0]: 3}


def test_rows_flush_by_number_by_interval_and_on_demand() -> None:
    log, clock = new_log(), ManualClock()
    stage = new_stage(log, clock, batch_rows=3, flush_interval_us=50)
    put(log, (0, 0), Row(0, 1))
    stage.step()
    clock.advance(49)
    stage.step()
    assert batches(log) == []
    clock.advance(1)
    assert stage.step()
    assert [batch.rows for batch in batches(log)] == [1]
    put(log, (1, 0), Row(0, 1), Row(1, 2), Row(2, 3))
    stage.step()
    assert [batch.rows for batch in batches(log)] == [1, 3]
    put(log, (1, 0), Row(3, 4))
    stage.step()
    stage.flush()
    assert [batch.rows for batch in batches(log)] == [1, 3, 1]


def test_a_batch_that_is_half_full_when_it_is_due_waits_for_the_rest_as_long_again() -> None:
    log, clock = new_log(), ManualClock()
    stage = new_stage(log, clock, batch_rows=4, flush_interval_us=50)
    put(log, (0, 0), Row(0, 1), Row(1, 2))
    stage.step()
    clock.advance(99)
    stage.step()
    assert batches(log) == []
    clock.advance(1)
    assert stage.step()
    assert [batch.rows for batch in batches(log)] == [2]


def test_dead_letters_flush_by_number_too_and_name_topic_partition_and_offset() -> None:
    log = new_log()
    put(log, (0, 1), Row(0, 1, b""), Row(1, 1, values=(101.0,)))
    new_stage(log, batch_rows=2).step()
    letters = [value for value in log.values("dead-letters", 0) if isinstance(value, DeadLetter)]
    assert [(x.stream, x.topic, x.partition, x.offset, x.reason) for x in letters] == [
        ("temperature", "temperatures", 1, 0, Reason.MISSING_ID),
        ("temperature", "temperatures", 1, 1, Reason.OUT_OF_RANGE),
    ]
    assert [section.to_offset for section in sections(batches(log), 0, (0, 1))] == [2]


def test_the_catalog_of_before_is_read_before_any_row_and_only_the_groups_own_changes_travel() -> None:
    log = new_log(2)
    log.put(SOURCES[CATALOG_KEY], change("factory", "one"))
    log.put(SOURCES[CATALOG_KEY], change("other", "two"))
    log.put(SOURCES[CATALOG_KEY], change("factory", "three"), offset=5)
    put(log, (0, 0), Row(0, 1))
    stage = new_stage(log, shards=2, poll_records=2)
    for _ in range(2):
        stage.step()
        stage.flush()
    assert sum(batch.rows for batch in batches(log, 2)) == 0
    stage.step()
    stage.flush()
    assert sum(batch.rows for batch in batches(log, 2)) == 1
    for shard in range(2):
        records = [r for b in batches(log, 2) if b.shard == shard for r in b.catalog]
        changes = [(r.offset, r.change.uid if r.change else None) for r in records]
        assert changes == [(0, "one"), (1, None), (5, "three")]
        covered = sections(batches(log, 2), shard, CATALOG_KEY)
        assert [(s.from_offset, s.to_offset) for s in covered] == [(0, 2), (2, 6)]
    assert log.committed[SOURCES[CATALOG_KEY]] == 6


def test_offsets_without_records_or_content_are_covered() -> None:
    log = new_log()
    put(log, (0, 0), Row(3, 1))
    log.put(SOURCES[0, 0], None, span=4, offset=4)
    put(log, (0, 0), Row(10, 2))
    stage = new_stage(log)
    stage.step()
    stage.flush()
    (section,) = batches(log)[0].sections
    assert (section.from_offset, section.to_offset, section.rows) == (0, 11, 2)


def test_a_record_that_is_no_source_rows_is_refused_by_name() -> None:
    log = new_log()
    log.put(SOURCES[1, 0], "hello")
    with pytest.raises(LogError, match="'vibrations', partition 0, offset 0 holds a str"):
        new_stage(log).step()


def test_a_partition_too_far_ahead_of_the_frontier_is_paused_until_the_frontier_follows() -> None:
    log = new_log()
    put(log, (1, 0), Row(0, 100))
    stage = new_stage(log)
    stage.on_frontier(50)
    stage.step()
    assert stage.statistics().paused == {(1, 0)}
    put(log, (1, 0), Row(1, 101))
    assert not stage.step()
    stage.on_frontier(90)
    stage.step()
    assert stage.statistics().paused == set()
    assert stage.step()
    assert stage.statistics().pending_rows == 2


def test_a_quiet_partition_gets_an_idle_lease_by_the_clock() -> None:
    log, clock = new_log(), ManualClock(S)
    stage = new_stage(log, clock)
    stage.step()
    clock.advance(10 * S)
    put(log, (1, 0), Row(0, 1))
    stage.step()
    stage.flush()
    (batch,) = batches(log)
    assert batch.written_us == 11 * S
    leases = {(s.stream, s.partition): s.idle_until_us for s in batch.sections}
    assert leases == {(0, 0): 21 * S, (0, 1): 21 * S, (1, 0): 0}


def test_finished_input_is_written_to_its_end_without_a_moving_clock() -> None:
    log = new_log()
    put(log, (0, 0), Row(0, 7))
    stage = new_stage(log)
    stage.finish_at_end()
    was_finished = stage.is_finished
    stage.step()
    assert (was_finished, stage.is_finished) == (False, True)
    marks = {(s.stream, s.partition): s.watermark_us for b in batches(log) for s in b.sections}
    assert marks == {(0, 0): MAX_TIME_US, (0, 1): MAX_TIME_US, (1, 0): MAX_TIME_US}
    assert batches(log)[0].sections[0].newest_us == 7
    stage.close()


def test_a_full_log_stops_reading_and_loses_nothing() -> None:
    log = new_log(2)
    log.room = 1
    put(log, (0, 0), *(Row(i, i, b"%d" % i) for i in range(20)))
    stage = new_stage(log, shards=2, batch_rows=1)
    stage.step()
    put(log, (0, 0), Row(20, 20))
    assert not stage.step()
    assert stage.statistics().pending_rows == 0
    assert stage.statistics().undelivered == 1
    assert log.committed == {}
    with pytest.raises(CapacityError, match=r"'aligned.factory.1' is full; 1 "):
        stage.close()
    log.room = 100
    assert stage.step()
    assert log.committed == {SOURCES[0, 0]: 21}
    assert stage.statistics().peak_undelivered == 2
    assert sum(batch.rows for batch in batches(log, 2)) == 21


def test_counts_are_shown_by_stream() -> None:
    log = new_log()
    put(log, (0, 0), Row(0, 9), Row(1, 1), Row(2, 1, b""))
    stage = new_stage(log)
    stage.step()
    temperature, vibration = stage.statistics().counts
    assert (temperature.stream, temperature.accepted, temperature.late) == ("temperature", 2, 1)
    assert temperature.rejected == {Reason.MISSING_ID: 1}
    assert (vibration.stream, vibration.records) == ("vibration", 0)


# --- crashes -----------------------------------------------------------------------------------------------------


def filled(shards: int, seed: st.DataObject) -> FakeLog:
    """Return a log with drawn rows in all sources, in chunks of four."""
    log = new_log(shards)
    log.put(SOURCES[CATALOG_KEY], change("factory", "one"))
    for key in ((0, 0), (0, 1), (1, 0)):
        times = seed.draw(st.lists(st.integers(0, 30), min_size=4, max_size=24))
        rows = [Row(i, time_us, b"%d" % (time_us % 7)) for i, time_us in enumerate(times)]
        for begin in range(0, len(rows), 4):
            put(log, key, *rows[begin : begin + 4])
    return log


def read(log: FakeLog, shards: int) -> dict[tuple[int, SourceKey], list[Aligned]]:
    """Return rows as a reader takes them: repeats dropped; fails on a gap or a watermark that goes back."""
    found = {}
    for shard in range(shards):
        for key in SOURCES:
            cursor, mark, rows = 0, -(2**63), []
            for batch in batches(log, shards):
                for section in sections([batch], shard, key):
                    assert section.from_offset <= cursor
                    if section.to_offset >= cursor:
                        rows += [row for row in rows_of([batch], shard, key, 1) if row.offset >= cursor]
                        cursor = section.to_offset
                        assert section.watermark_us >= mark
                        mark = section.watermark_us
            assert cursor == log.end(SOURCES[key])
            found[shard, key] = rows
    return found


def run(stage: AlignStage) -> None:
    """Step to the end of the input."""
    stage.finish_at_end()
    while not stage.is_finished and stage.step():
        pass


@given(data=st.data(), shards=st.sampled_from([1, 3]), batch_rows=st.sampled_from([1, 5, 1000]))
def test_a_stage_that_dies_anywhere_and_resumes_from_its_commits_gives_the_rows_of_an_unbroken_run(
    data: st.DataObject, shards: int, batch_rows: int
) -> None:
    log = filled(shards, data)
    unbroken = FakeLog(log.topics, {position: list(records) for position, records in log.records.items()})
    run(new_stage(unbroken, shards=shards, poll_records=100))
    starts = {key: SourceStart() for key in SOURCES}
    for _ in range(data.draw(st.integers(1, 3))):
        log.room = data.draw(st.integers(0, 12))
        run(new_stage(log, shards=shards, starts=starts, batch_rows=batch_rows, poll_records=2, max_rows=7))
        log.room = float("inf")
        starts = {key: start_of(p, log.stored.get(p, Committed(0))) for key, p in SOURCES.items()}
    run(new_stage(log, shards=shards, starts=starts, batch_rows=batch_rows, poll_records=2))
    assert read(log, shards) == read(unbroken, shards)
