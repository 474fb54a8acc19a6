"""When each shard begins each revision of a query, and what of it a restart must know."""

from bisect import bisect_right
from dataclasses import dataclass, field

from skyband.model.catalog import QueryChange

__all__ = ["Activation", "Mark", "MergeCheckpoint", "ShardProgress", "Timeline"]


@dataclass(frozen=True, slots=True)
class Activation:
    """One shard evaluates (or, not `active`, leaves out) window ends from `first_us` on under `revision`.

    Window ends up to `evaluated_to` were evaluated under earlier revisions (MIN_TIME_US: none for sure). `partition`,
    `offset`: where it was read; only progress read behind it counts for what it begins.
    """

    revision: int
    first_us: int
    active: bool
    evaluated_to: int
    partition: int
    offset: int


class Timeline:
    """The activations of one query on one shard, by revision: initially none.

    The revision in force at T is the newest whose first window end is at most T::

        revision 1 active   2 paused      3 active
        |-------------------|.............|-----------
        10                  40            90            T = 30: active, 40: not, 90: active, 5: not begun
    """

    __slots__ = ("entries",)

    def __init__(self, entries: tuple[Activation, ...] = ()) -> None:
        self.entries = entries

    @property
    def revision(self) -> int:
        """The newest revision begun, -1 if none."""
        return self.entries[-1].revision if self.entries else -1

    def add(self, activation: Activation) -> None:
        """Append the activation of a newer revision; one that it overtakes before it began is never in force."""
        kept = tuple(entry for entry in self.entries if entry.first_us < activation.first_us)
        self.entries = (*kept, activation)

    def at(self, window_end: int) -> Activation | None:
        """Return the activation in force at `window_end`, None before the first."""
        place = bisect_right(self.entries, window_end, key=lambda entry: entry.first_us)
        return self.entries[place - 1] if place else None

    def forget_before(self, window_end: int) -> bool:
        """Drop what is in force only before `window_end`; return whether anything was."""
        place = bisect_right(self.entries, window_end, key=lambda entry: entry.first_us)
        if place < 2:
            return False
        self.entries = self.entries[place - 1 :]
        return True


@dataclass(frozen=True, slots=True)
class Mark:
    """High-water mark of one query: all that is remembered of it.

    Window ends up to `window_end` are decided: written, or never to be. `had_rows` says whether the result written last
    had rows; `states` which later revisions are active; `activations` the timeline of each shard.
    """

    change: QueryChange
    window_end: int
    had_rows: bool
    states: tuple[tuple[int, bool], ...]
    activations: tuple[tuple[Activation, ...], ...]


@dataclass(frozen=True, slots=True)
class ShardProgress:
    """The furthest progress of a shard as told in one partition; `offset` of its newest progress record."""

    partition: int
    shard: int
    frontier_us: int
    settled_us: int
    offset: int


@dataclass(frozen=True, slots=True)
class MergeCheckpoint:
    """What a merge remembers beside the marks: progress, and the offsets it had come to.

    `read_to` and `needed` are by partials partition: the next offset, and the least one whose content is not all
    decided; `catalog_to` is the next offset of the catalog. A restart reads from `needed`; until it is back at
    `read_to`, nothing is decided. A group that is not merged yet, but whose values have come by, has a checkpoint with
    the first of them as `needed`.
    """

    group: str
    generation: int
    progress: tuple[ShardProgress, ...] = ()
    read_to: dict[int, int] = field(default_factory=dict)
    needed: dict[int, int] = field(default_factory=dict)
    catalog_to: int = 0
