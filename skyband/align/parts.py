"""What waits to be flushed: pieces of coverage, gathered in parts that each become one batch on every shard."""

from collections.abc import Sequence
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

    def take(self) -> list[list[Piece]]:
        """Return the parts that hold anything, oldest first, and begin anew."""
        parts, self._parts = self._parts, [[]]
        self._open_rows[:] = 0
        self.rows = 0
        return [part for part in parts if part]


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
        rows = np.zeros(shards, np.int64)
        for piece in pieces:
            if piece.rows:
                rows += piece.rows.shard_rows
        spans.append(Span(key, pieces[0].from_offset, pieces[-1].to_offset, pieces[-1].standing, rows))
    return spans
