"""Members of a group share partitions out in the memory log as they do on Kafka: no partition with two, none lost."""

import random
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from skyband.errors import LogError
from skyband.log import CommitRefusedError, Committed, ManualClock, MemoryLog, Position
from skyband.log.memory import MemoryConsumer

FOREVER_S = 60.0


class Reader:
    """A member that begins where its group has committed, and notes what happens to it."""

    def __init__(self, log: MemoryLog, group: str = "readers", topics: Sequence[str] = ("rows",)) -> None:
        self.consumer = log.consumer(group)
        self.journal: list[tuple[str, list[int]]] = []
        self.held: set[Position] = set()
        self.next: dict[Position, int] = {}
        self.consumer.subscribe(topics, self)

    def on_assigned(self, positions: Sequence[Position]) -> Mapping[Position, int]:
        self.journal.append(("assigned", [position.partition for position in positions]))
        assert not self.held & set(positions)
        self.held |= set(positions)
        stored = self.consumer.committed(positions)
        return {p: stored.get(p, Committed(0)).offset for p in positions}

    def on_revoked(self, positions: Sequence[Position], *, lost: bool) -> None:
        assert not lost
        self.journal.append(("revoked", [position.partition for position in positions]))
        self.held -= set(positions)
        done = {p: self.next.pop(p) for p in positions if p in self.next}
        self.consumer.commit(done, {p: f"left at {offset}" for p, offset in done.items()})

    def poll(self, most: int = 100) -> list[object]:
        records = self.consumer.poll(most, 0)
        for record in records:
            position = Position(record.topic, record.partition)
            assert position in self.held
            self.next[position] = record.next_offset
        return [record.value for record in records]

    @property
    def partitions(self) -> list[int]:
        return sorted(position.partition for position in self.held)


def log_with(partitions: int = 4, records: int = 0) -> MemoryLog:
    log = MemoryLog(ManualClock(1))
    log.create_topic("rows", partitions)
    producer = log.producer()
    for i in range(records):
        producer.send("rows", i % partitions, i)
    return log


def test_a_lone_member_gets_all_partitions_and_reads_from_where_it_says() -> None:
    log = log_with(records=8)
    log.consumer("readers").commit({Position("rows", 2): 1})
    reader = Reader(log)
    assert sorted(map(int, reader.poll())) == [0, 1, 3, 4, 5, 6, 7]
    assert reader.journal == [("assigned", [0, 1, 2, 3])]


def test_partitions_go_round_and_move_in_two_steps() -> None:
    log = log_with()
    first, second = Reader(log), Reader(log)
    second.poll()
    assert second.partitions == [1, 3]
    first.poll()
    assert first.partitions == [0, 2]
    third = Reader(log)
    third.poll()
    assert third.partitions == []
    first.poll()
    second.poll()
    third.poll()
    first.poll()
    second.poll()
    assert [r.partitions for r in (first, second, third)] == [[0, 3], [1], [2]]


def test_what_a_member_had_done_is_committed_when_it_gives_up_and_nothing_is_read_twice() -> None:
    log = log_with(partitions=2, records=4)
    first = Reader(log)
    assert first.poll() == [0, 2, 1, 3]
    second = Reader(log)
    assert second.poll() == []
    assert first.poll() == []
    assert second.poll() == []
    assert second.partitions == [1]
    assert first.consumer.committed([Position("rows", 1)]) == {Position("rows", 1): Committed(2, "left at 2")}


def test_who_leaves_leaves_its_partitions_to_the_others() -> None:
    log = log_with()
    first, second = Reader(log), Reader(log)
    first.poll()
    second.poll()
    first.consumer.close()
    second.poll()
    assert second.partitions == [0, 1, 2, 3]


def test_a_commit_for_a_partition_of_another_member_is_refused_and_stores_nothing() -> None:
    log = log_with()
    first, second = Reader(log), Reader(log)
    first.poll()
    second.poll()
    with pytest.raises(CommitRefusedError, match="group 'readers' does not read topic 'rows' partition 1 in this mem"):
        first.consumer.commit({Position("rows", 0): 0, Position("rows", 1): 0})
    assert first.consumer.committed([Position("rows", 0), Position("rows", 1)]) == {}


def test_new_partitions_are_found_at_the_next_poll() -> None:
    log = log_with(partitions=1)
    reader = Reader(log)
    reader.poll()
    log.grow_topic("rows", 3)
    log.producer().send("rows", 2, "new")
    assert reader.poll() == ["new"]
    assert reader.journal == [("assigned", [0]), ("assigned", [1, 2])]
    with pytest.raises(LogError, match="topic 'rows' has 3 partitions; it cannot shrink"):
        log.grow_topic("rows", 2)


def test_members_get_partitions_of_the_topics_they_want_only() -> None:
    log = log_with(partitions=2)
    log.create_topic("catalog", 1)
    both, rows = Reader(log, topics=("rows", "catalog")), Reader(log)
    for reader in (both, rows, both, rows):
        reader.poll()
    assert both.held | rows.held == {Position("catalog", 0), Position("rows", 0), Position("rows", 1)}
    assert all(position.topic == "rows" for position in rows.held)


def test_a_topic_of_a_subscription_must_exist_and_the_consumer_have_a_group() -> None:
    log = log_with()
    with pytest.raises(LogError, match="topic 'nothing' does not exist"):
        Reader(log, topics=("rows", "nothing"))
    lone = Reader(log)
    lone.poll()
    assert lone.partitions == [0, 1, 2, 3]
    with pytest.raises(LogError, match="without a group cannot share partitions"):
        log.consumer().subscribe(["rows"], lone)


def test_a_member_must_say_where_to_begin_and_another_may_take_what_it_could_not() -> None:
    class Silent(Reader):
        def on_assigned(self, positions: Sequence[Position]) -> Mapping[Position, int]:
            return {}

    log = log_with(partitions=1)
    silent = Silent(log)
    with pytest.raises(LogError, match="was assigned topic 'rows' partition 0 and said no offset"):
        silent.poll()
    silent.consumer.close()
    assert Reader(log).poll() == []


def test_partitions_that_nobody_holds_yet_wait_for_the_group() -> None:
    log = MemoryLog(ManualClock(1))
    log.create_topic("rows", 1, truncate=True, readers=("other",))
    log.producer().send("rows", 0, "kept")
    reader = Reader(log)
    other = log.consumer("other")
    other.commit({Position("rows", 0): 1})
    assert reader.poll() == ["kept"]


def test_paused_partitions_are_not_paused_for_who_gets_them_next() -> None:
    log = log_with(partitions=1, records=1)
    first = Reader(log)
    first.poll(0)
    first.consumer.pause([Position("rows", 0)])
    assert first.poll() == []
    first.consumer.close()
    assert Reader(log).poll() == [0]


def test_assigning_ends_a_subscription() -> None:
    log = log_with(partitions=1, records=1)
    first, second = Reader(log), Reader(log)
    first.poll(0)
    first.consumer.assign({Position("rows", 0): 1})
    assert first.consumer.poll(9, 0) == []
    assert second.poll() == [0]


def test_a_poll_that_waits_is_woken_to_share_partitions_out_anew() -> None:
    log = log_with(partitions=2, records=2)
    first = Reader(log)
    first.poll()
    with ThreadPoolExecutor() as threads:
        begun = threading.Event()
        wait = log._changed.wait

        def tell_and_wait(timeout: float | None = None) -> bool:
            begun.set()
            return wait(timeout)

        log._changed.wait = tell_and_wait  # type: ignore[method-assign]
        polled = threads.submit(first.consumer.poll, 9, FOREVER_S)
        assert begun.wait(FOREVER_S)
        second = Reader(log)
        assert polled.result(FOREVER_S) == []
        second.poll()
        assert (first.partitions, second.partitions) == ([0], [1])


@pytest.mark.parametrize("seed", range(30))
def test_with_members_coming_and_going_all_is_read_once_and_no_partition_has_two(seed: int) -> None:
    chance = random.Random(seed)
    log = log_with(partitions=3)
    members: list[Reader] = []
    seen: list[object] = []
    sent = 0
    for _ in range(200):
        action = chance.randrange(8)
        if action == 0 and len(members) < 4:
            members.append(Reader(log))
        elif action == 1 and members:
            leaver = members.pop(chance.randrange(len(members)))
            leaver.consumer.commit(leaver.next)
            leaver.consumer.close()
        elif action == 2:
            for _ in range(chance.randrange(5)):
                log.producer().send("rows", chance.randrange(log.partitions("rows")), sent)
                sent += 1
        elif action == 3 and log.partitions("rows") < 7:
            log.grow_topic("rows", log.partitions("rows") + 1)
        elif members:
            seen += members[chance.randrange(len(members))].poll(chance.randrange(1, 4))
        held = [position for member in members for position in member.held]
        assert len(held) == len(set(held))
        log._groups["readers"]._check() if members else None
    members.append(Reader(log))
    for _ in range(4):
        for member in members:
            seen += member.poll()
    assert sorted(map(int, seen)) == list(range(sent))


# Commits with notes ──────────────────────────────────────────────────────────────────────────────────────────────────


def assigned(log: MemoryLog, group: str | None = "readers") -> MemoryConsumer:
    consumer = log.consumer(group)
    consumer.assign({Position("rows", 0): 0})
    return consumer


def test_a_commit_keeps_its_note_until_the_next() -> None:
    log = log_with(records=8)
    at, other = Position("rows", 0), Position("rows", 1)
    consumer = assigned(log)
    assert consumer.committed([at]) == {}
    consumer.commit({at: 1, other: 2}, {at: '{"watermark_us": 5}'})
    assert consumer.committed([at, other]) == {at: Committed(1, '{"watermark_us": 5}'), other: Committed(2)}
    consumer.commit({at: 2})
    assert assigned(log).committed([at]) == {at: Committed(2, "")}
    assert assigned(log, "others").committed([at]) == {}


def test_notes_have_a_limit_and_commits_a_group() -> None:
    log = log_with(records=4)
    at = Position("rows", 0)
    assigned(log).commit({at: 1}, {at: "x" * 1_000})
    with pytest.raises(LogError, match="partition 0 with a note of 1,001 characters; keep it within 1,000"):
        assigned(log).commit({at: 1}, {at: "x" * 1_001})
    with pytest.raises(LogError, match="without a group cannot look for commits"):
        assigned(log, None).committed([at])


def test_starts_are_stored_where_nothing_is_committed_yet() -> None:
    log = log_with(records=8)
    at, other = Position("rows", 0), Position("rows", 1)
    assigned(log).commit({at: 1}, {at: "note"})
    log.commit_starts("readers", {at: 2, other: 2})
    assert assigned(log).committed([at, other]) == {at: Committed(1, "note"), other: Committed(2)}
    with pytest.raises(LogError, match="commits offset 3 of topic 'rows' partition 2, which ends at 2"):
        log.commit_starts("readers", {Position("rows", 2): 3})


def test_a_group_with_members_has_begun_already() -> None:
    log = log_with(records=8)
    reader = Reader(log)
    with pytest.raises(LogError, match="group 'readers' has members, which have begun already"):
        log.commit_starts("readers", {Position("rows", 0): 1})
    reader.consumer.commit({})
    reader.poll()
    reader.consumer.commit({Position("rows", 0): 1})
    log.commit_starts("readers", {Position("rows", 0): 2})
    assert reader.consumer.committed([Position("rows", 0)]) == {Position("rows", 0): Committed(1)}


def test_topics_have_ids_of_their_own() -> None:
    log = log_with()
    log.create_topic("more", 1)
    assert log.topic_id("rows") != log.topic_id("more")
    with pytest.raises(LogError, match="topic 'none' does not exist"):
        log.topic_id("none")
