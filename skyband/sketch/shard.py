"""One shard's sketch: aligned batches in, what is new of them into the sketch."""

from collections.abc import Mapping

import numpy as np

from skyband.coverage.aligned_batch import AlignedBatch
from skyband.coverage.coverage import CATALOG, Coverage, Plan
from skyband.coverage.source_partition import Place
from skyband.errors import LogError
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.model.group import Group
from skyband.sketch.group_sketch import GroupSketch
from skyband.sketch.publication import SERVICE, Publication, read_observations
from skyband.sketch.settings import SketchTuning
from skyband.structures.store_arrays import Rows

__all__ = ["SketchShard"]

# So many panes make a window: tallies expire by a 60th of it.
_PANES = 60


class SketchShard:
    """The sketch of one shard, and what of its aligned log is in it.

    Words: the *window* is the group's retention, in whole panes of the sketch; it ends at the first pane boundary above
    the newest accepted event time of the group, which moves the window and nothing else does: neither a clock nor how
    batches were read. What is older is forgotten before a batch's rows are taken in::

        batch            1        2          3           window of 3 panes
        newest time      41       43         52
        window        [20, 50) [20, 50)   [30, 60)       pane 10

    Initially nothing is covered but what lies below `starts`; None: the aligned log is read from somewhere in its
    middle, and what it first speaks of begins there. Invariant: the sketch is a function of the new rows of the batches
    offered, so that a shard restored from a publication and one that ran throughout have the same bytes.
    """

    def __init__(
        self,
        group: Group,
        generation: int,
        shard: int,
        starts: Mapping[tuple[int, int], int] | None,
        tuning: SketchTuning | None = None,
    ) -> None:
        tuning = tuning or SketchTuning()
        streams = len(group.streams)
        pane_us = group.pane_us * -(-group.retention_us // (_PANES * group.pane_us))
        self.group = group
        self.generation = generation
        self.shard = shard
        self.sketch = GroupSketch(
            streams,
            group.width,
            pane_us * -(-group.retention_us // pane_us),
            pane_us,
            bitmaps=tuning.bitmaps,
            budget_bytes=tuning.sample_bytes * streams,
        )
        self.newest_us = MIN_TIME_US
        self.rows = self.repeats = 0
        self._oldest_us = MAX_TIME_US
        self._to_us = MIN_TIME_US
        panes = self.sketch.shape.window_us // pane_us
        self._observations = np.zeros((panes, streams), np.int64)
        self._cover_from(None if starts is None else {CATALOG: 0, **{Place(*key): at for key, at in starts.items()}})

    def restore(self, publication: Publication) -> None:
        """Be as the shard that published. Raises LogError if it is damaged, or of a group of another shape."""
        sketch = GroupSketch.from_bytes(publication.sketch)
        wanted, found = self.sketch.shape, sketch.shape
        if (wanted.streams, wanted.width) != (found.streams, found.width):
            raise LogError(
                f"statistics {publication.key!r} are of {found.streams} streams with {found.width} values, but the "
                f"group has {wanted.streams} with {wanted.width}; send their key without a value, they are made anew"
            )
        self.sketch = sketch
        self.newest_us = publication.newest_us
        self._oldest_us = publication.from_us
        self._to_us = publication.to_us
        self._observations = read_observations(publication, found.streams)
        self._cover_from({Place(stream, partition): at for stream, partition, at in publication.next_offsets})

    def offer(self, batch: AlignedBatch) -> None:
        """Take in what is new of the next batch of the aligned log.

        Raises CoverageGapError at a gap, LogError for a batch of another shard or a damaged one; neither changes the
        sketch. Cost O(1) a row, and a pass over the sample for each pane that time goes on.
        """
        for section in batch.sections:
            place = Place(section.stream, section.partition)
            if place not in self._known:
                self._coverage.add(place, section.from_offset)
                self._known.add(place)
        plan = self._coverage.plan(batch)
        spans = _spans(plan)
        times = [batch.event_time_us[low:high] for low, high in spans]
        newest = max((step.section.newest_us for step in plan.steps), default=MIN_TIME_US)
        self._move(max([newest, *(int(part.max()) for part in times)]))
        if spans:
            self._oldest_us = min([self._oldest_us, *(int(part.min()) for part in times)])
            rows = _rows_of(batch)
            for low, high in spans:
                self.sketch.add(rows, low, high)
                self._count(rows, low, high)
                self.rows += high - low
        self.repeats += plan.repeats
        for step in plan.steps:
            step.source.cover(step.section, batch.written_us)

    def publication(self, aligned_offset: int, published_us: int) -> Publication | None:
        """Return what is to be published, None before the group's first row. `aligned_offset`: that of the next batch.

        Cost: the size of the sketch.
        """
        return None if self.newest_us == MIN_TIME_US else self.standing(aligned_offset, published_us)

    def standing(self, aligned_offset: int, published_us: int) -> Publication:
        """Return what `restore` takes, before the group's first row too. Cost: the size of the sketch."""
        sources = (self._coverage.catalog, *self._coverage.sources)
        begin_us = self._to_us - self.sketch.shape.window_us
        return Publication(
            group=self.group.name,
            generation=self.generation,
            shard=self.shard,
            aligned_offset=aligned_offset,
            next_offsets=tuple(sorted((*source.place, source.next_offset) for source in sources)),
            newest_us=self.newest_us,
            from_us=max(self._oldest_us, begin_us),
            to_us=self._to_us,
            source=SERVICE,
            published_us=published_us,
            observations=self._observations.astype("<i8", copy=False).tobytes(),
            sketch=self.sketch.to_bytes(),
        )

    def _cover_from(self, starts: Mapping[Place, int] | None) -> None:
        self._coverage = Coverage(self.group, self.generation, self.shard)
        self._known: set[Place] = set()
        for place, offset in sorted((starts or {}).items()):
            self._coverage.add(place, offset)
            self._known.add(place)

    def _move(self, newest_us: int) -> None:
        """Let time go on to the newest event time known."""
        if newest_us <= self.newest_us:
            return
        self.newest_us = newest_us
        shape = self.sketch.shape
        to_us = (newest_us // shape.pane_us + 1) * shape.pane_us
        if to_us > self._to_us:
            passed = min((to_us - self._to_us) // shape.pane_us, len(self._observations))
            self._observations[:-passed] = self._observations[passed:]
            self._observations[-passed:] = 0
            self._to_us = to_us
            self.sketch.expire(to_us - shape.window_us)

    def _count(self, rows: Rows, low: int, high: int) -> None:
        """Count the rows [low, high) that lie in the window, by pane and stream. Cost O(1) a row."""
        panes, streams = self._observations.shape
        pane = panes - 1 - (self._to_us - 1 - rows.event_time_us[low:high]) // self.sketch.shape.pane_us
        places = pane * streams + rows.stream[low:high]
        counts = np.bincount(places[pane >= 0], minlength=panes * streams)
        self._observations += counts.reshape(panes, streams)


def _spans(plan: Plan) -> list[tuple[int, int]]:
    """Return which rows of a batch are new, in as few spans as there may be: each costs a call of a kernel."""
    spans: list[tuple[int, int]] = []
    for step in plan.steps:
        if step.lo == step.hi:
            continue
        if spans and spans[-1][1] == step.lo:
            spans[-1] = (spans[-1][0], step.hi)
        else:
            spans.append((step.lo, step.hi))
    return spans


def _rows_of(batch: AlignedBatch) -> Rows:
    """Return the rows of a batch, each with its stream. Cost: a copy of nothing but the streams."""
    streams = np.array([section.stream for section in batch.sections], np.int32)
    return Rows(
        stream=np.repeat(streams, [section.rows for section in batch.sections]),
        event_time_us=np.ascontiguousarray(batch.event_time_us),
        id_bytes=batch.id_bytes,
        id_ends=batch.id_ends,
        id_hash=np.ascontiguousarray(batch.id_hash).view(np.int64),
        values=np.ascontiguousarray(batch.values),
    )
