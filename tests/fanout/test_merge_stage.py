"""The merge of one partition: generations and groups that come and go, and values that are no longer there."""

from collections.abc import Sequence

import pytest

from skyband.errors import LogError
from skyband.fanout.catalog_reader import CatalogReader
from skyband.fanout.log_committer import LogCommitter
from skyband.fanout.merge_stage import MergeStage, ServedGroup
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryLog
from skyband.log.record_log import Position
from skyband.model.catalog import QueryChange
from skyband.model.query import QueryState
from tests.fanout.partials import query_change
from tests.fanout.place import SECOND, Q, activated, new_log, part, progress, records, results, send, shown, trim

FIRST, SECOND_GENERATION = ServedGroup("g", 1, 1), ServedGroup("g", 2, 1)
AT = Position("partials", 0)


class Reader:
    """A merge of partition 0, and what a replica does around it."""

    def __init__(self, groups: Sequence[ServedGroup] = (FIRST,), log: MemoryLog | None = None) -> None:
        self.log = log or new_log()
        self.clock = ManualClock()
        self.start(groups)

    def start(self, groups: Sequence[ServedGroup]) -> None:
        self.catalog = CatalogReader(self.log)
        self.catalog.read_to_end()
        committer = LogCommitter(self.log, self.clock, 0, transactional_id="merge")
        self.merge = MergeStage(self.log, self.clock, 0, committer, self.catalog)
        self.merge.serve(groups)
        self.consumer = self.log.consumer()
        self.consumer.assign({AT: self.merge.begin()})

    def change(self, change: QueryChange) -> None:
        send(self.log, "catalog", change)
        for record in self.catalog.read_to_end():
            assert isinstance(record.value, QueryChange)
            self.merge.change_query(record.value, record.offset)

    def read(self, *values: object) -> None:
        send(self.log, "partials", *values)
        self.merge.accept(self.consumer.poll(1000, 0.0))
        self.clock.advance(SECOND)
        self.merge.advance()

    def written(self) -> list[tuple[int, str]]:
        return shown(results(self.log))

    def marks(self) -> dict[str, object]:
        """Return what compaction would leave."""
        newest = {record.key: record.value for record in records(self.log, "marks")}
        return {key.decode(): value for key, value in newest.items() if key is not None and value is not None}


def begun() -> Reader:
    reader = Reader()
    reader.change(Q)
    reader.read(activated(10), part(10, "a"), progress(10), part(20, "b"), progress(20))
    return reader


def test_a_new_generation_writes_nothing_again_and_goes_on_behind_it() -> None:
    reader = begun()
    reader.merge.serve([FIRST, SECOND_GENERATION])
    reader.read(activated(10, generation=2), *(part(end, "x", generation=2) for end in (10, 20, 30)))
    reader.read(progress(30, generation=2), part(30, "old"), progress(30))
    assert reader.written() == [(10, "a"), (20, "b"), (30, "x")]
    assert reader.marks().keys() == {"g/2", "g/2/u1"}
    assert [record.value for record in records(reader.log, "marks")].count(None) == 2
    assert reader.merge.ignored_values == 2


@pytest.mark.parametrize("restarts", [0, 1, 2])
def test_that_rows_of_an_older_generation_are_gone_is_told_once_also_across_restarts(restarts: int) -> None:
    reader = begun()
    reader.merge.serve([SECOND_GENERATION])
    if restarts > 0:
        reader.start([SECOND_GENERATION])
    reader.read(activated(10, generation=2), progress(20, generation=2))
    if restarts > 1:
        reader.merge.finish()
        reader.start([SECOND_GENERATION])
    reader.read(progress(60, generation=2))
    assert reader.written() == [(10, "a"), (20, "b"), (30, "")]


def test_a_generation_that_begins_while_nothing_runs_takes_the_newest_marks_there_are() -> None:
    reader = begun()
    reader.merge.serve([SECOND_GENERATION])
    reader.read(activated(30, generation=2), part(30, "c", generation=2), progress(30, generation=2))
    reader.start([ServedGroup("g", 5, 1)])
    reader.read(activated(10, generation=5), *(part(end, "z", generation=5) for end in (20, 30, 40)))
    reader.read(progress(40, generation=5))
    assert reader.written() == [(10, "a"), (20, "b"), (30, "c"), (40, "z")]


def test_a_query_deleted_between_generations_leaves_no_mark() -> None:
    reader = begun()
    reader.change(query_change("u1", name="q", revision=2, state=QueryState.DELETED))
    reader.merge.serve([SECOND_GENERATION])
    reader.read(activated(10, generation=2), activated(30, query_change("u1", revision=2), generation=2))
    reader.read(progress(40, generation=2))
    assert reader.marks().keys() == {"g/2"}
    assert reader.written() == [(10, "a"), (20, "b")]


def test_a_group_that_is_gone_is_forgotten_and_what_comes_late_of_it_is_not_kept() -> None:
    reader = begun()
    reader.merge.serve([])
    reader.read(part(30, "late"), progress(30))
    assert reader.marks() == {}
    assert reader.merge.needed() == reader.consumer.end_offsets([AT])[AT]


def test_groups_that_are_not_served_yet_keep_their_marks() -> None:
    reader = begun()
    reader.start([])
    reader.read(part(30, "c"), progress(30))
    assert reader.marks().keys() == {"g/1", "g/1/u1"}
    reader.start([FIRST])
    reader.read()
    assert reader.written() == [(10, "a"), (20, "b"), (30, "c")]


def test_the_first_value_of_a_generation_that_is_not_served_yet_is_remembered_across_restarts() -> None:
    reader = begun()
    first = reader.consumer.end_offsets([AT])[AT]
    reader.read(activated(10, generation=2), part(30, "n", generation=2), part(30, "o"), progress(30))
    assert reader.merge.needed() == first
    reader.start([FIRST])
    reader.read(part(40, "p"), progress(40))
    reader.merge.serve([FIRST, SECOND_GENERATION])
    reader.read(part(50, "q", generation=2), progress(50, generation=2))
    assert reader.written() == [(10, "a"), (20, "b"), (30, "o"), (40, "p"), (50, "q")]


def test_nothing_is_stored_when_nothing_has_changed() -> None:
    reader = begun()
    before = len(records(reader.log, "marks"))
    for _ in range(3):
        reader.read()
    assert len(records(reader.log, "marks")) == before


def test_a_group_whose_partials_are_gone_stops_alone_and_its_next_generation_goes_on() -> None:
    log = MemoryLog(ManualClock())
    for topic in ("catalog", "results", "marks", "progress"):
        log.create_topic(topic, 1)
    log.create_topic("partials", 1, truncate=True)
    reader = Reader(log=log)
    reader.change(Q)
    other = query_change("u2", group="h")
    reader.change(other)
    reader.read(activated(10), part(10, "a"), progress(10), part(20, "b"))
    send(log, "partials", activated(10, other), part(10, "x", other), progress(20), progress(10, group="h"))
    trim(log, "partials", 0, 4)
    reader.start([FIRST, ServedGroup("h", 1, 1)])
    reader.read()
    assert str(reader.merge.stopped["g", 1]) == (
        "group 'g' needs partition 0 of the partials from offset 3 on, which is kept from 4 on; "
        "give the group a new generation"
    )
    assert reader.written() == [(10, "a"), (10, "x")]
    reader.merge.serve([SECOND_GENERATION, ServedGroup("h", 1, 1)])
    assert reader.merge.stopped == {}
    reader.read(activated(10, generation=2), part(10, "n", generation=2), part(20, "n", generation=2))
    reader.read(progress(20, generation=2))
    assert reader.written() == [(10, "a"), (10, "x"), (20, "n")]


def test_a_committer_is_of_no_use_after_a_failure_or_before_it_is_loaded() -> None:
    log = new_log()
    one, two = (LogCommitter(log, ManualClock(), 0, transactional_id="merge") for _ in range(2))
    with pytest.raises(LogError, match="'merge' is not open"):
        one.tell({("g", 1): 10})
    one.load()
    two.load()
    with pytest.raises(LogError, match="has taken over"):
        one.tell({("g", 1): 10})
    with pytest.raises(LogError, match="'merge' is not open, or an earlier commit of it failed"):
        one.tell({("g", 1): 10})
    one.close()
    two.tell({("g", 1): 20})
    assert len(records(log, "progress")) == 1
