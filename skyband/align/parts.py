"""What waits to be flushed: pieces of coverage, gathered in parts that each become one batch on every shard."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from skyband.align.checks import CheckedRows
from skyband.align.source import SourceKey, Standing
from skyband.coverage.aligned_batch import CatalogRecord, Section

__all__ = ["Parts", "Piece", "Span", "spans_of"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Coverage of [from, to) of one source partition, its standing at `to`, and what fell into it."""

    key: SourceKey
    from_offset: int
    to_offset: int
    standing: Standing
    rows: CheckedRows | None = None
    catalog: tuple[CatalogRecord, ...] = ()


class Parts:
    """Pieces in the order in which they came, cut into parts.

    A piece that would bring a shard to more than `max_rows` rows begins a new part; a piece that alone has more gets a
    part of its own. Begins with one part, open and empty.
    """

    def __init__(self, shards: int, max_rows: int) -> None:
        self._max_rows = max_rows
        self._parts: list[list[Piece]] = [[]]
        self._open_rows = np.zeros(shards, np.int64)
        self.rows = 0

    def __bool__(self) -> bool:
        """Whether any piece waits, with rows or without."""
        return bool(self._parts[-1])

    def append(self, piece: Piece) -> None:
        """Put a piece into the open part, or begin another with it."""
        if piece.rows:
            its_rows = piece.rows.shard_rows
            if self._parts[-1] and np.any(self._open_rows + its_rows > self._max_rows):
                self._parts.append([])
                self._open_rows[:] = 0
            self._open_rows += its_rows
            self.rows += int(its_rows.sum())
        self._parts[-1].append(piece)

    def waits(self, key: SourceKey) -> bool:
        """Return whether a piece of a source partition waits. Cost: all pieces."""
        return any(piece.key == key for part in self._parts for piece in part)

    def drop(self, key: SourceKey) -> None:
        """Forget the pieces of a source partition. Cost: all pieces."""
        kept = [[piece for piece in part if piece.key != key] for part in self._parts]
        self._parts = [part for part in kept if part] or [[]]
        self._open_rows = self._rows_of(self._parts[-1])
        self.rows = sum(int(self._rows_of(part).sum()) for part in self._parts)

    def take(self) -> list[list[Piece]]:
        """Return the parts that hold anything, oldest first, and begin anew."""
        parts, self._parts = self._parts, [[]]
        self._open_rows[:] = 0
        self.rows = 0
        return [part for part in parts if part]

    def _rows_of(self, part: Sequence[Piece]) -> npt.NDArray[np.int64]:
        """Return how many rows each shard has in a part."""
        return _shard_rows(part, len(self._open_rows))

    def _check(self, cursors: Mapping[SourceKey, int]) -> None:
        """Assert the invariants; the pieces of a source partition end at its cursor."""
        assert all(self._parts) or len(self._parts) == 1
        assert self._open_rows.tolist() == self._rows_of(self._parts[-1]).tolist()
        assert self.rows == sum(int(self._rows_of(part).sum()) for part in self._parts)
        for part in self._parts:
            assert len(part) == 1 or np.all(self._rows_of(part) <= self._max_rows)
        reached: dict[SourceKey, int] = {}
        for piece in (piece for part in self._parts for piece in part):
            assert piece.from_offset == reached.get(piece.key, piece.from_offset) <= piece.to_offset
            reached[piece.key] = piece.to_offset
        for key, offset in reached.items():
            assert offset == cursors[key]


@dataclass(frozen=True, slots=True)
class Span:
    """All pieces of one source partition in one part: its section, but for the number of rows on each shard."""

    key: SourceKey
    from_offset: int
    to_offset: int
    standing: Standing
    shard_rows: npt.NDArray[np.int64]

    def section(self, shard: int) -> Section:
        """Return the section for one shard."""
        return Section(
            stream=self.key[0],
            partition=self.key[1],
            from_offset=self.from_offset,
            to_offset=self.to_offset,
            rows=int(self.shard_rows[shard]),
            watermark_us=self.standing.watermark_us,
            newest_us=self.standing.newest_us,
            idle_until_us=self.standing.idle_until_us,
        )


def spans_of(part: Sequence[Piece], shards: int) -> list[Span]:
    """Return the spans of a part whose pieces lie source partition after source partition."""
    spans = []
    for key, group in groupby(part, key=lambda piece: piece.key):
        pieces = list(group)
        rows = _shard_rows(pieces, shards)
        spans.append(Span(key, pieces[0].from_offset, pieces[-1].to_offset, pieces[-1].standing, rows))
    return spans


def _shard_rows(pieces: Sequence[Piece], shards: int) -> npt.NDArray[np.int64]:
    rows = np.zeros(shards, np.int64)
    for piece in pieces:
        if piece.rows:
            rows += piece.rows.shard_rows
    return rows
