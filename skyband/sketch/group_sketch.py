"""All sketches of one shard of a group: what its rows say of its streams, in a size that does not grow with them.

Words: as in `sliding_fm` (how many objects), `coordinated_sample` (which come together, how far apart, with which
values) and `repetition` (how often again).

::

                       ┌─ bitmaps of every stream      cardinality
    rows ── add_rows ──┼─ one sample of objects        appearance, lags, values
                       └─ tallies of every pane        second moment

Sketches of shards, or of stretches of time, merge into the sketch of all their rows. Initial state: empty.
Invariant: the same rows in the same order and the same expiries make the same bytes.
"""

import math

import numpy as np

from skyband.errors import DefinitionError, LogError
from skyband.model.statistics import (
    LAG_QUANTILES,
    VALUE_QUANTILES,
    GroupStatistics,
    PairStatistics,
    StreamStatistics,
)
from skyband.sketch.repetition import SecondMoment
from skyband.sketch.sketch_bytes import SketchShape, read_sketch, write_sketch
from skyband.sketch.sketch_kernels import add_rows
from skyband.sketch.sliding_fm import SlidingFM
from skyband.structures.coordinated_sample import (
    CoordinatedSample,
    SampledObjects,
    appearance_among,
    lags_among,
    quantiles_of,
)
from skyband.structures.store_arrays import Rows

__all__ = ["GroupSketch"]


class GroupSketch:
    """The sketches of `streams` streams with up to `width` values each, over windows of up to `window_us`.

    `pane_us` is how finely tallies expire: a 60th of the window is enough. `bitmaps` and `columns` are powers of two a
    stream, `budget_bytes` is for the whole sample (default 5 KB a stream). State of the defaults, a stream, with 60
    panes: 16 KB of bitmaps, 62 KB of tallies, 5 KB of sample.
    """

    def __init__(
        self,
        streams: int,
        width: int,
        window_us: int,
        pane_us: int,
        *,
        bitmaps: int = 64,
        columns: int = 256,
        budget_bytes: int | None = None,
    ) -> None:
        self.bitmaps = SlidingFM(streams, bitmaps)
        self.sample = CoordinatedSample(streams, width, window_us, budget_bytes=budget_bytes)
        self.moments = SecondMoment(streams, window_us, pane_us, columns)
        self.shape = SketchShape(streams, width, window_us, pane_us, bitmaps, columns, self.sample.budget_bytes)

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        return self.bitmaps.state_bytes + self.sample.state_bytes + self.moments.state_bytes

    def add(self, rows: Rows, first: int, last: int) -> None:
        """Take in rows [first, last), each once: a repeat would change the second moment. Cost O(1) a row."""
        part = slice(first, last)
        add_rows(
            self.bitmaps.newest_us,
            self.moments.tallies,
            self.moments.ring,
            self.moments.pane_us,
            tuple(self.sample.arrays),
            rows.stream[part],
            rows.event_time_us[part],
            rows.id_hash[part].view(np.uint64),
            rows.values[part],
        )

    def expire(self, before_us: int) -> None:
        """Forget what came before `before_us`, a multiple of the pane, where a window of full length begins now."""
        self.sample.expire(before_us)
        self.moments.expire(before_us)

    def merge(self, other: "GroupSketch") -> None:
        """Take in the sketch of other rows. Raises DefinitionError if it was built with other settings."""
        if self.shape != other.shape:
            raise DefinitionError(f"a sketch with {other.shape} cannot be merged into one with {self.shape}")
        self.bitmaps.merge(other.bitmaps)
        self.sample.merge(other.sample)
        self.moments.merge(other.moments)

    def to_bytes(self) -> bytes:
        """Return it as bytes, as `sketch_bytes` lays them out."""
        return write_sketch(self.shape, self.bitmaps.newest_us, self.sample.arrays, self.moments)

    @classmethod
    def from_bytes(cls, data: bytes) -> "GroupSketch":
        """Return what `to_bytes` made. Raises LogError for another version, or what is damaged."""
        shape, fill = read_sketch(data)
        try:
            sketch = cls(
                shape.streams,
                shape.width,
                shape.window_us,
                shape.pane_us,
                bitmaps=shape.bitmaps,
                columns=shape.columns,
                budget_bytes=shape.budget_bytes,
            )
        except DefinitionError as error:
            raise LogError(f"a sketch is damaged ({error}); delete it, it is made anew from the log") from error
        fill(sketch.bitmaps.newest_us, sketch.sample.arrays, sketch.moments)
        return sketch

    def statistics(self, at_us: int, window_us: int | None = None) -> GroupStatistics:
        """Return what is known of the window that ends at `at_us`, a multiple of the pane above every event time added.

        `window_us` (default: the longest) is a multiple of the pane too. Cost: streams**2 passes over the sample.
        """
        window_us = self.shape.window_us if window_us is None else window_us
        streams = range(self.shape.streams)
        objects = self.sample.objects(at_us, window_us)
        return GroupStatistics(
            at_us=at_us,
            window_us=window_us,
            rate=objects.rate,
            sampled_objects=len(objects.present),
            streams=tuple(self._stream(objects, stream, at_us, window_us) for stream in streams),
            pairs=tuple(self._pair(objects, i, j, at_us, window_us) for i in streams for j in streams if i != j),
        )

    def _stream(self, objects: SampledObjects, stream: int, at_us: int, window_us: int) -> StreamStatistics:
        seen = objects.values[(objects.present >> stream) & 1 == 1, stream]
        values = (tuple(float(v) for v in quantiles_of(column, VALUE_QUANTILES)) for column in seen.T)
        moment = self.moments.second_moment(stream, at_us, window_us)
        return StreamStatistics(
            cardinality=self.bitmaps.likely(stream, at_us, window_us),
            second_moment=moment,
            repetition_bound=math.sqrt(moment.value + 2.0 * moment.error),
            value_quantiles=tuple(column for column in values if column),
        )

    def _pair(self, objects: SampledObjects, given: int, stream: int, at_us: int, window_us: int) -> PairStatistics:
        lags = quantiles_of(lags_among(objects, given, stream), LAG_QUANTILES)
        return PairStatistics(
            given=given,
            stream=stream,
            appearance=appearance_among(objects, 1 << given, stream, at_us, window_us),
            lag_us=tuple(int(lag) for lag in lags),
        )

    def _check(self) -> None:
        self.sample._check()
        self.moments._check()
