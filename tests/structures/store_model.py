"""A window store beside a plain list of its rows, and groups to try it on."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.local.brute_force import combined
from skyband.local.brute_force_score import scorer
from skyband.model.binding import BoundQuery, bind
from skyband.model.duration import MIN_TIME_US
from skyband.model.group import Group
from skyband.model.query import Order, Query, Window
from skyband.model.stream import Aggregate, Attribute, Identity, Stream
from skyband.structures.hashing import hash_ids
from skyband.structures.object_table import find_object
from skyband.structures.question import Question, pose
from skyband.structures.window_store import Rows, WindowStore
from tests.oracle import Seen

# (stream, object id, event time, values)
Given = tuple[int, str, int, tuple[float, ...]]


def group_of(
    *aggregates: Aggregate,
    widths: Sequence[int] = (),
    by_row: bool = False,
    pane_us: int = 10,
    panes: int = 8,
    **more: Any,
) -> Group:
    """Return a group with a stream a, b, … for each aggregate; one of width above 1 has attributes a0, a1, …"""
    identity = Identity.ROW if by_row else Identity.OBJECT
    streams = []
    for i, aggregate in enumerate(aggregates):
        name, width = "abcdefgh"[i], (widths[i] if widths else 1)
        wide = width > 1 or by_row
        names = [f"{name}{j}" for j in range(width)] if wide else [name]
        attributes = tuple(Attribute(name=n, lo=0.0, hi=1_000.0) for n in names)
        stream = Stream(
            name=f"{name}s" if wide else name,
            attributes=attributes,
            is_object_stream=wide,
            aggregate=aggregate,
            identity=identity,
            **more,
        )
        streams.append(stream)
    return Group(
        name="g", streams=tuple(streams), retention_us=panes * pane_us, pane_us=pane_us, retention_rows=4 * panes
    )


def ask(group: Group, score: str, **more: Any) -> BoundQuery:
    """Return a bound query; only its score, order and requirements matter here."""
    order = Order.LOWEST if more.pop("lowest", False) else Order.HIGHEST
    return bind(
        group, Query(name="q", k=3, score=score, window=Window(group.pane_us, group.pane_us), order=order, **more)
    )


class StoreModel:
    """A store, and the rows that it must hold; `collide`: so few different hashes that all ids collide."""

    def __init__(self, group: Group, *, in_rows: bool = False, collide: bool = False) -> None:
        self.group = group
        self.store = WindowStore(group, in_rows=in_rows)
        self.in_rows = in_rows
        self.collide = collide
        self.rows: list[tuple[int, Seen]] = []
        self.applied = self.expired = 0
        self.low = MIN_TIME_US
        self.newest = MIN_TIME_US

    def apply(self, given: Sequence[Given]) -> None:
        """Apply rows, in two calls on the same columns."""
        rows = self._columns(given)
        middle = len(given) // 2
        self.store.apply(rows, 0, middle)
        self.store.apply(rows, middle, len(given))
        for stream, object_id, event, values in given:
            tick = self.applied if self.in_rows else event // self.group.pane_us
            if tick < self.low:
                self.expired += 1
            else:
                self.newest = max(self.newest, tick)
                self.rows.append((tick, Seen(self.applied, stream, 0, self.applied, event, object_id, values)))
            self.applied += 1

    def expire(self, low: int) -> None:
        self.store.expire(low)
        self.low = max(self.low, low)
        self.rows = [(tick, row) for tick, row in self.rows if tick >= self.low]

    def key(self, row: Seen) -> Any:
        return row.release if self.group.is_row_identity else row.object_id

    def objects(self) -> dict[Any, list[tuple[int, Seen]]]:
        """Return the rows of every live object, with their ticks."""
        found: dict[Any, list[tuple[int, Seen]]] = {}
        for tick, row in self.rows:
            found.setdefault(self.key(row), []).append((tick, row))
        return found

    def slot(self, key: Any) -> int:
        """Return the slot of a live object, -1 if the store does not know it."""
        arrays = self.store.objects.arrays
        if self.group.is_row_identity:
            records = arrays.records[: self.store.objects.top]
            found = np.flatnonzero((records[:, 2] >= 0) & (records[:, 3] == key))
            return int(found[0]) if len(found) == 1 else -1
        (tag,) = self._hashes([key])
        id_bytes = np.frombuffer(key.encode(), np.uint8)
        return int(find_object(arrays, int(tag), id_bytes, 0, len(id_bytes)))

    def read(self, bound: BoundQuery, own: Sequence[tuple[int, Seen]], low: int) -> tuple[int, list[float]]:
        """Return what `read_object` must: the bits of the columns present, and the values."""
        rows = [row for tick, row in own if tick >= low]
        seen_in = {row.stream for row in rows}
        if not set(bound.required_streams) <= seen_in:
            return 0, []
        pane = None if self.in_rows else self.group.pane_us
        bits, values = 0, []
        for i, column in enumerate(bound.columns):
            bits |= (column.stream in seen_in) << i
            values.append(combined(column, rows, pane) if column.stream in seen_in else column.missing)
        return bits, values

    def score(self, bound: BoundQuery, values: Sequence[float]) -> float:
        """Return the rank score of an object: larger is better."""
        score = scorer(bound.query.score)({c.name: v for c, v in zip(bound.columns, values, strict=True)}) + 0.0
        return score if bound.descending else -score

    def ranked(self, bound: BoundQuery, low: int) -> list[tuple[Any, float, int, list[float]]]:
        """Return (key, rank score, bits, values) of all eligible objects in rank order."""
        found = []
        for key, own in self.objects().items():
            bits, values = self.read(bound, own, low)
            if bits and np.isfinite(rank := self.score(bound, values)):
                found.append((-rank, own[0][1].object_id.encode(), own[0][1].release, key, rank, bits, values))
        return [tuple(item[3:]) for item in sorted(found, key=lambda item: item[:3])]

    def question(self, bound: BoundQuery) -> Question:
        return pose(bound, self.store.layout)

    def _hashes(self, ids: Iterable[str]) -> npt.NDArray[np.int64]:
        encoded = [i.encode() for i in ids]
        arena = np.frombuffer(b"".join(encoded), np.uint8)
        hashes = hash_ids(arena, np.cumsum([len(i) for i in encoded], dtype=np.int64))
        return (hashes % np.uint64(3) if self.collide else hashes).view(np.int64)

    def _columns(self, given: Sequence[Given]) -> Rows:
        encoded = [object_id.encode() for _, object_id, _, _ in given]
        width = max(len(stream.attributes) for stream in self.group.streams)
        values = np.zeros((len(given), width))
        for i, (_, _, _, row) in enumerate(given):
            values[i, : len(row)] = row
        return Rows(
            stream=np.array([row[0] for row in given], np.int32),
            event_time_us=np.array([row[2] for row in given], np.int64),
            id_bytes=np.frombuffer(b"".join(encoded), np.uint8).copy(),
            id_ends=np.cumsum([len(i) for i in encoded], dtype=np.int64),
            id_hash=self._hashes(row[1] for row in given),
            values=values,
        )
