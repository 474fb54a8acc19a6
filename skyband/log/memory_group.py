"""Which member of a group of readers holds which partition of the memory log. It knows neither locks nor waiting."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from skyband.log.record_log import Position

__all__ = ["MemberKey", "MemoryGroup", "Shares"]

MemberKey = int


@dataclass(frozen=True, slots=True)
class Shares:
    """What a member is to do at its next poll: give these up first, then take those."""

    revoked: tuple[Position, ...] = ()
    assigned: tuple[Position, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.revoked or self.assigned)


@dataclass(slots=True)
class MemoryGroup:
    """The members of one group, and who holds what.

    A partition is *meant* for one member: the partitions of all topics, in order, go round the members that want their
    topic, in order of joining. It is *held* by the member that has taken it and not given it up yet; so it moves in two
    steps, as with cooperative rebalancing: its old member gives it up at its next poll, its new one takes it at the one
    after. Initially without members. Invariant: a partition is held by at most one member, and by none that has left.
    """

    _topics: dict[MemberKey, tuple[str, ...]] = field(default_factory=dict)
    _held: dict[Position, MemberKey] = field(default_factory=dict)
    _joined: MemberKey = 0

    @property
    def is_empty(self) -> bool:
        """Whether nobody reads."""
        return not self._topics

    @property
    def topics(self) -> set[str]:
        """What its members read."""
        return {topic for topics in self._topics.values() for topic in topics}

    def join(self, topics: Sequence[str]) -> MemberKey:
        """Add a member."""
        self._joined += 1
        self._topics[self._joined] = tuple(topics)
        return self._joined

    def leave(self, member: MemberKey) -> None:
        """Remove a member; what it held is free."""
        self._topics.pop(member, None)
        self._held = {position: holder for position, holder in self._held.items() if holder != member}

    def holds(self, member: MemberKey, position: Position) -> bool:
        """Return whether the member holds the partition."""
        return self._held.get(position) == member

    def shares(self, member: MemberKey, partitions: Mapping[str, int]) -> Shares:
        """Return what the member is to give up and to take, with so many partitions of each topic.

        Cost: linear in the partitions of the group's topics.
        """
        meant = self._meant(partitions)
        revoked = [at for at, holder in self._held.items() if holder == member and meant.get(at) != member]
        assigned = [at for at, owner in meant.items() if owner == member and at not in self._held]
        return Shares(tuple(sorted(revoked)), tuple(sorted(assigned)))

    def take(self, member: MemberKey, positions: Sequence[Position]) -> None:
        """Let the member hold partitions that are free."""
        assert not any(position in self._held for position in positions)
        self._held.update(dict.fromkeys(positions, member))

    def give_up(self, positions: Sequence[Position]) -> None:
        """Set partitions free."""
        for position in positions:
            self._held.pop(position, None)

    def _meant(self, partitions: Mapping[str, int]) -> dict[Position, MemberKey]:
        meant: dict[Position, MemberKey] = {}
        for topic in sorted(self.topics):
            members = [member for member, topics in self._topics.items() if topic in topics]
            for partition in range(partitions[topic]):
                meant[Position(topic, partition)] = members[len(meant) % len(members)]
        return meant

    def _check(self) -> None:
        """Assert the invariant."""
        assert set(self._held.values()) <= set(self._topics)
