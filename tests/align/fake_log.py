"""A record log in lists, with a journal of what was done, a cap on what it takes, and groups whose members can die."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import zip_longest

from skyband.errors import CapacityError
from skyband.log.commit_refused import CommitRefusedError
from skyband.log.record_log import Committed, Consumer, Member, Position, Producer, Record


@dataclass
class FakeLog:
    """Records by partition; every send, flush and commit is noted in `journal`. `room`: sends until it is full.

    `begins`: lowest offsets, where not 0. `refusing`: whether commits are refused.
    """

    topics: dict[str, int]
    records: dict[Position, list[Record]] = field(default_factory=dict)
    stored: dict[Position, Committed] = field(default_factory=dict)
    journal: list[str] = field(default_factory=list)
    begins: dict[Position, int] = field(default_factory=dict)
    room: float = float("inf")
    refusing: bool = False
    members: list["FakeConsumer"] = field(default_factory=list)
    owners: dict[Position, "FakeConsumer"] = field(default_factory=dict)

    @property
    def committed(self) -> dict[Position, int]:
        """The offsets of what is committed."""
        return {position: its.offset for position, its in self.stored.items()}

    def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic."""
        self.topics[name] = partitions

    def partitions(self, name: str) -> int:
        """Return its number of partitions."""
        return self.topics[name]

    def producer(self, transactional_id: str | None = None) -> Producer:
        """Return a producer."""
        assert transactional_id is None
        return FakeProducer(self)

    def consumer(self, group: str | None = None) -> Consumer:
        """Return a consumer."""
        return FakeConsumer(self)

    def commit_starts(self, group: str, offsets: Mapping[Position, int]) -> None:
        """Store offsets where there are none."""
        for position, offset in offsets.items():
            self.stored.setdefault(position, Committed(offset))

    def topic_id(self, name: str) -> str:
        """Return its name."""
        return name

    def put(self, position: Position, value: object, *, span: int = 1, offset: int | None = None) -> None:
        """Append a record, at `offset` if given."""
        records = self.records.setdefault(position, [])
        at = self.end(position) if offset is None else offset
        records.append(Record(position.topic, position.partition, at, None, value, 0, span))

    def end(self, position: Position) -> int:
        """Return the offset behind the newest record."""
        records = self.records.get(position)
        return records[-1].next_offset if records else 0

    def values(self, topic: str, partition: int) -> list[object]:
        """Return all values of a partition."""
        return [record.value for record in self.records.get(Position(topic, partition), [])]

    def expel(self, consumer: "FakeConsumer") -> None:
        """Take a member for dead: its partitions are free, and it does not know yet."""
        self.members.remove(consumer)
        self.owners = {position: owner for position, owner in self.owners.items() if owner is not consumer}

    def share(self, consumer: "FakeConsumer") -> set[Position]:
        """Return what a member should have: every so-many-th partition."""
        positions = sorted(Position(t, p) for t in set(consumer.topics) for p in range(self.topics.get(t, 0)))
        return set(positions[self.members.index(consumer) :: len(self.members)])


@dataclass
class FakeProducer:
    """Appends to the lists of its log."""

    log: FakeLog

    def send(
        self,
        topic: str,
        partition: int,
        value: object,
        *,
        key: bytes | None = None,
        timestamp_us: int = 0,
        span: int = 1,
    ) -> None:
        """Append a record."""
        if self.log.room < 1:
            raise CapacityError("full")
        self.log.room -= 1
        assert partition < self.log.topics[topic]
        self.log.journal.append(f"send {topic}")
        self.log.put(Position(topic, partition), value, span=span)

    def flush(self) -> None:
        """Note it."""
        self.log.journal.append("flush")

    def transaction(self) -> AbstractContextManager[None]:
        """Refuse: align has no use for it."""
        raise NotImplementedError

    def close(self) -> None:
        """Do nothing."""


class FakeConsumer:
    """Reads the lists of its log, a record of each partition in turn; pauses outlive a partition's coming and going."""

    def __init__(self, log: FakeLog) -> None:
        self.log = log
        self.cursors: dict[Position, int] = {}
        self.paused: set[Position] = set()
        self.topics: Sequence[str] = ()
        self.member: Member | None = None

    def assign(self, positions: Mapping[Position, int | None]) -> None:
        """Take positions with their offsets."""
        self.cursors = {position: offset or 0 for position, offset in positions.items()}

    def subscribe(self, topics: Sequence[str], member: Member) -> None:
        """Become a member."""
        self.topics, self.member = topics, member
        self.log.members.append(self)

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Record]:
        """Share anew, then return what is there."""
        if self.member is not None:
            self._rebalance(self.member)
        fresh = [
            [record for record in self.log.records.get(position, []) if record.next_offset > cursor]
            for position, cursor in self.cursors.items()
            if position not in self.paused
        ]
        found = [record for turn in zip_longest(*fresh) for record in turn if record is not None][:max_records]
        for record in found:
            self.cursors[Position(record.topic, record.partition)] = record.next_offset
        return found

    def _rebalance(self, member: Member) -> None:
        if self not in self.log.members:
            self._drop(member, sorted(self.cursors), lost=True)
            self.log.members.append(self)
        share = self.log.share(self)
        self._drop(member, sorted(self.cursors.keys() - share), lost=False)
        free = sorted(position for position in share if position not in self.log.owners)
        if free:
            self.log.owners.update(dict.fromkeys(free, self))
            self.cursors.update(member.on_assigned(free))

    def _drop(self, member: Member, positions: Sequence[Position], *, lost: bool) -> None:
        if positions:
            member.on_revoked(positions, lost=lost)
        for position in positions:
            del self.cursors[position]
            if self.log.owners.get(position) is self:
                del self.log.owners[position]

    def pause(self, positions: Sequence[Position]) -> None:
        """Take note."""
        assert self.cursors.keys() >= set(positions)
        self.paused |= set(positions)

    def resume(self, positions: Sequence[Position]) -> None:
        """Take note."""
        assert self.cursors.keys() >= set(positions)
        self.paused -= set(positions)

    def begin_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        """Return the lowest offsets."""
        return {position: self.log.begins.get(position, 0) for position in positions}

    def end_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        """Return the ends."""
        return {position: self.log.end(position) for position in positions}

    def committed(self, positions: Sequence[Position]) -> dict[Position, Committed]:
        """Return what is committed."""
        return {position: self.log.stored[position] for position in positions if position in self.log.stored}

    def commit(self, offsets: Mapping[Position, int], notes: Mapping[Position, str] | None = None) -> None:
        """Take note; refuse a member that is none, or does not own the partitions."""
        is_member = self.member is None or all(self.log.owners.get(position) is self for position in offsets)
        if self.log.refusing or not is_member:
            raise CommitRefusedError("the group has been shared out anew")
        self.log.journal.append("commit")
        self.log.stored.update({p: Committed(offset, (notes or {}).get(p, "")) for p, offset in offsets.items()})

    def close(self) -> None:
        """Leave the group."""
        if self.member is not None and self in self.log.members:
            self._drop(self.member, sorted(self.cursors), lost=False)
            self.log.expel(self)
