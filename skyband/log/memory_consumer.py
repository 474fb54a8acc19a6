"""Readers of the memory log."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from skyband.errors import LogError
from skyband.log.commit_refused import CommitRefusedError
from skyband.log.memory_group import MemberKey, MemoryGroup, Shares
from skyband.log.memory_partition import MemoryPartition
from skyband.log.note_length import check_note
from skyband.log.record_log import Committed, Member, Position, Record

if TYPE_CHECKING:
    from skyband.log.memory import MemoryLog

__all__ = ["MemoryConsumer"]


class MemoryConsumer:
    """Reads partitions in offset order: those assigned, or its share of topics it subscribes to; one thread owns it.

    Polls serve the partitions in turn. A position inside a record (of a span above 1) delivers that record whole.
    Initially it has no partitions. A subscribed consumer has those that its group says it holds.
    """

    def __init__(self, log: "MemoryLog", group: str | None) -> None:
        self._log = log
        self._group = group
        self._cursors: dict[Position, int] = {}
        self._paused: set[Position] = set()
        self._turn = 0
        self._member: Member | None = None
        self._key: MemberKey = 0
        self._closed = False

    def assign(self, positions: Mapping[Position, int | None]) -> None:
        """Read exactly these partitions from these offsets (None: the committed one); a subscription ends.

        Raises LogError if there is no commit, or the offset is not one from the partition's begin to its end.
        """
        with self._log._changed:
            self._check_open()
            cursors = {position: self._start(position, offset) for position, offset in positions.items()}
            self._leave()
            if self._group is not None:
                for position in positions:
                    self._log._partition(position).register(self._group)
            self._cursors, self._turn = cursors, 0
            self._paused.clear()

    def subscribe(self, topics: Sequence[str], member: Member) -> None:
        """Share the partitions of these topics, also those to come, with the other members of the group.

        Raises LogError without a group, or if a topic does not exist.
        """
        with self._log._changed:
            self._check_open()
            self._leave()
            self._key = self._own_group("share partitions").join(topics)
            self._member = member
            self._cursors, self._turn = {}, 0
            self._paused.clear()
            try:
                self._register()
            except LogError:
                self._leave()
                raise
            self._log._changed.notify_all()

    def poll(self, max_records: int, timeout_s: float) -> list[Record]:
        """Return up to `max_records` records, waiting at most `timeout_s` for the first; 0 never waits.

        A subscribed consumer first gives up and takes partitions, if its group is to be shared out anew. Raises
        LogError if records were dropped under the cursor, or the log is closed.
        """
        with self._log._changed:
            self._check_open()
        self._rebalance()
        with self._log._changed:
            records = self._read(max_records)
            if records or timeout_s <= 0:
                return records
            self._log._changed.wait_for(lambda: self._log._closed or self._has_news(), timeout_s)
        self._rebalance()
        with self._log._changed:
            return self._read(max_records)

    def pause(self, positions: Sequence[Position]) -> None:
        """Stop delivering these partitions until `resume`."""
        self._check_assigned(positions)
        self._paused.update(positions)

    def resume(self, positions: Sequence[Position]) -> None:
        """Deliver these partitions again."""
        self._check_assigned(positions)
        self._paused.difference_update(positions)

    def begin_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        """Return the lowest offset of each partition that can be read."""
        with self._log._changed:
            self._check_open()
            return {position: self._log._partition(position).begin_offset for position in positions}

    def end_offsets(self, positions: Sequence[Position]) -> dict[Position, int]:
        """Return the offset after the newest record of each partition."""
        with self._log._changed:
            self._check_open()
            return {position: self._log._partition(position).end_offset for position in positions}

    def committed(self, positions: Sequence[Position]) -> dict[Position, Committed]:
        """Return what this reader's group has stored of each partition, if anything."""
        with self._log._changed:
            self._check_open()
            self._own_group("look for commits")
            stored = {position: self._log._partition(position).committed(self._group) for position in positions}
            return {position: committed for position, committed in stored.items() if committed is not None}

    def commit(self, offsets: Mapping[Position, int], notes: Mapping[Position, str] | None = None) -> None:
        """Store next offsets for this reader's group, with notes, and drop what is done where the topic says so.

        Raises LogError for an offset that is not in the partition, a note that is too long, or without a group;
        CommitRefusedError if this subscribed reader does not hold a partition (any more).
        """
        notes = notes or {}
        with self._log._changed:
            self._check_open()
            group = self._own_group("commit")
            name = self._group or ""
            for position, offset in offsets.items():
                self._log._check_offset(name, position, offset)
                check_note(name, position, notes.get(position, ""))
                if self._member is not None and not group.holds(self._key, position):
                    raise CommitRefusedError(
                        f"group {name!r} does not read {_name(position)} in this member (any more); nothing is "
                        "committed: poll, and go on with what is assigned"
                    )
            for position, offset in offsets.items():
                self._log._partition(position).commit(name, offset, notes.get(position, ""))
            self._log._changed.notify_all()

    def close(self) -> None:
        """Leave the group, whose commits stay; the member is not asked to give anything up."""
        with self._log._changed:
            self._leave()
            self._log._changed.notify_all()
        self._closed = True
        self._cursors.clear()

    def _own_group(self, purpose: str) -> MemoryGroup:
        if self._group is None:
            raise LogError(f"a consumer without a group cannot {purpose}; ask the log for a consumer of a group")
        return self._log._group(self._group)

    def _leave(self) -> None:
        if self._member is not None and self._group is not None:
            self._log._group(self._group).leave(self._key)
        self._member = None

    def _register(self) -> dict[str, int]:
        """Let all partitions of the group's topics wait for the group; return how many there are of each."""
        group = self._own_group("share partitions")
        counts: dict[str, int] = {}
        for topic in group.topics:
            partitions = self._log._topic(topic).partitions
            counts[topic] = len(partitions)
            for partition in partitions:
                partition.register(self._group or "")
        return counts

    def _shares(self) -> Shares:
        if self._member is None or self._log._closed:
            return Shares()
        return self._own_group("share partitions").shares(self._key, self._register())

    def _rebalance(self) -> None:
        """Give up, then take partitions; the member does its part without the lock, since it may read and write."""
        member = self._member
        if member is None:
            return
        group = self._own_group("share partitions")
        with self._log._changed:
            revoked = self._shares().revoked
        if revoked:
            member.on_revoked(revoked, lost=False)
            with self._log._changed:
                group.give_up(revoked)
                self._cursors = {at: offset for at, offset in self._cursors.items() if at not in revoked}
                self._paused.difference_update(revoked)
                self._log._changed.notify_all()
        with self._log._changed:
            assigned = self._shares().assigned
            group.take(self._key, assigned)
        if assigned:
            try:
                self._begin(assigned, member.on_assigned(assigned))
            except BaseException:
                with self._log._changed:
                    group.give_up(assigned)
                raise

    def _begin(self, assigned: Sequence[Position], starts: Mapping[Position, int]) -> None:
        missing = [position for position in assigned if position not in starts]
        if missing:
            raise LogError(
                f"the member was assigned {_name(missing[0])} and said no offset for it; return one for each"
            )
        with self._log._changed:
            self._cursors.update({position: self._start(position, starts[position]) for position in assigned})

    def _start(self, position: Position, offset: int | None) -> int:
        partition = self._log._partition(position)
        if offset is None:
            committed = partition.committed(self._group)
            if committed is None:
                who = "a consumer without a group" if self._group is None else f"group {self._group!r}"
                raise LogError(f"{who} has committed no offset of {_name(position)}; assign one")
            offset = committed.offset
        if offset > partition.end_offset:
            raise LogError(
                f"offset {offset} of {_name(position)} is beyond its end {partition.end_offset}; begin there"
            )
        self._check_kept(position, partition, offset)
        return offset

    def _read(self, max_records: int) -> list[Record]:
        """Take up to so many records, beginning with the partition whose turn it is."""
        records: list[Record] = []
        order = list(self._cursors)
        for i in range(len(order)):
            if len(records) >= max_records:
                break
            position = order[(self._turn + i) % len(order)]
            if position in self._paused:
                continue
            partition = self._log._partition(position)
            self._check_kept(position, partition, self._cursors[position])
            found = partition.read(self._cursors[position], max_records - len(records))
            if found:
                self._cursors[position] = found[-1].next_offset
                records += found
        self._turn += 1
        return records

    def _has_news(self) -> bool:
        """Return whether a poll would give something, fail, or change what is assigned."""
        for position, offset in self._cursors.items():
            partition = self._log._partition(position)
            if position not in self._paused and not partition.begin_offset <= offset == partition.end_offset:
                return True
        return bool(self._shares())

    def _check_kept(self, position: Position, partition: MemoryPartition, offset: int) -> None:
        if offset < partition.begin_offset:
            raise LogError(
                f"offset {offset} of {_name(position)} is below {partition.begin_offset}, the lowest that is kept: its "
                "readers have committed past it; name this reader when the topic is made, or begin later"
            )

    def _check_assigned(self, positions: Sequence[Position]) -> None:
        for position in positions:
            if position not in self._cursors:
                raise LogError(f"{_name(position)} is not assigned to this consumer; assign it before")

    def _check_open(self) -> None:
        self._log._check_open()
        if self._closed:
            raise LogError("the consumer is closed; ask the log for a new one")


def _name(position: Position) -> str:
    return f"topic {position.topic!r} partition {position.partition}"
