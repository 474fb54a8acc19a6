"""One query in the merge: its shards' timelines, its undecided window ends, its high-water mark."""

from enum import Enum

from skyband.fanout.activation import Activation, Mark, Timeline
from skyband.fanout.progress_table import ProgressTable
from skyband.fanout.ranked_rows import Part
from skyband.model.catalog import QueryChange
from skyband.model.duration import MIN_TIME_US
from skyband.model.partials import Activated
from skyband.model.query import QueryState

__all__ = ["TrackedQuery", "Verdict"]


class Verdict(Enum):
    """What to do with a window end that time has passed."""

    WRITE = "write"
    DROP = "drop"
    WAIT = "wait"


class TrackedQuery:
    """A query between its creation and the last result before its deletion.

    `slots` maps each undecided window end to the parts read so far, by shard. Invariant: all keys of `slots` are above
    `window_end`, the high-water mark, which begins at that of the generation `before`, if there was one.
    """

    __slots__ = (
        "_activations",
        "change",
        "had_rows",
        "in_rows",
        "name",
        "size",
        "slide",
        "slots",
        "states",
        "timelines",
        "window_end",
    )

    def __init__(self, change: QueryChange, shards: int, before: Mark | None = None) -> None:
        self.change = change
        self.name = change.query.name
        self.size = change.query.window.size
        self.slide = change.query.window.slide
        self.in_rows = change.query.window.in_rows
        self.states = {change.revision: change.state is QueryState.ACTIVE}
        self.timelines = tuple(Timeline() for _ in range(shards))
        self.slots: dict[int, dict[int, Part]] = {}
        self.window_end = before.window_end if before is not None else MIN_TIME_US
        self.had_rows = before.had_rows if before is not None else False
        self._activations: tuple[tuple[Activation, ...], ...] | None = None

    @classmethod
    def from_mark(cls, mark: Mark) -> "TrackedQuery":
        """Return the query as a mark remembers it, with no slots."""
        query = cls(mark.change, len(mark.activations), mark)
        query.states = dict(mark.states)
        query.timelines = tuple(Timeline(entries) for entries in mark.activations)
        return query

    def mark(self) -> Mark:
        """Return what a restart must know."""
        if self._activations is None:
            self._activations = tuple(timeline.entries for timeline in self.timelines)
        return Mark(self.change, self.window_end, self.had_rows, tuple(self.states.items()), self._activations)

    def update(self, change: QueryChange) -> bool:
        """Take a newer revision; return whether it was newer."""
        if change.revision <= self.change.revision:
            return False
        self.change = change
        self.states[change.revision] = change.state is QueryState.ACTIVE
        return True

    def activate(self, activated: Activated, progress: ProgressTable, partition: int, offset: int) -> bool:
        """Note that a shard began a revision; return whether that was new. `progress` is as told before.

        A revision that the catalog no longer holds counts as active: what the shard then sends decides.
        """
        shard, revision = activated.shard, activated.revision
        timeline = self.timelines[shard]
        if revision <= timeline.revision:
            return False
        first, evaluated_to = activated.first_us, MIN_TIME_US
        if timeline.entries:
            last = timeline.entries[-1]
            evaluated_to = last.evaluated_to
            if last.active and progress.told_since(last.partition, shard, last.offset):
                evaluated_to = max(evaluated_to, progress.covered_by(partition, shard, self.slide))
            # While all is idle, a shard evaluates past its frontier, and may then name an end that it has evaluated
            # already under the revision before: that is not undone.
            if evaluated_to > MIN_TIME_US:
                first = max(first, (evaluated_to // self.slide + 1) * self.slide)
        # What is decided, by an older generation too, does not begin again: the first end behind it is the one at
        # which subscribers may have to see that the rows they were shown are gone.
        if first <= self.window_end:
            first = (self.window_end // self.slide + 1) * self.slide
        active = self.states.get(revision, True)
        timeline.add(Activation(revision, first, active, evaluated_to, partition, offset))
        self._activations = None
        begun = min(timeline.revision for timeline in self.timelines)
        self.states = {known: active for known, active in self.states.items() if known > begun}
        return True

    def decided(self, window_end: int) -> None:
        """Raise the high-water mark, and forget the part of the timelines that lies behind it."""
        self.window_end = window_end
        self.slots.pop(window_end, None)
        for timeline in self.timelines:
            if len(timeline.entries) > 1 and timeline.forget_before(window_end):
                self._activations = None

    def beginnings(self) -> list[int]:
        """Return the undecided window ends at which a revision begins on some shard and all shards are active."""
        firsts = {entry.first_us for timeline in self.timelines for entry in timeline.entries}
        return [first for first in firsts if first > self.window_end and self._is_active(first)]

    def ends_at(self) -> int | None:
        """Return the first window end that some shard no longer evaluates, once every shard ended the deleted query."""
        if self.change.state is not QueryState.DELETED:
            return None
        if any(timeline.revision < self.change.revision for timeline in self.timelines):
            return None
        return min(timeline.entries[-1].first_us for timeline in self.timelines)

    def _is_active(self, window_end: int) -> bool:
        in_force = [timeline.at(window_end) for timeline in self.timelines]
        return all(activation is not None and activation.active for activation in in_force)
