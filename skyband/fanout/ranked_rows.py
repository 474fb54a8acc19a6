"""Rows of one shard's partial batch, decoded once each however many queries show them."""

import math
from collections.abc import Mapping
from itertools import pairwise, repeat

from skyband.fanout.offset_holds import Hold
from skyband.model.partials import Evaluation, PartialBatch
from skyband.model.result import ResultRow

__all__ = ["Part", "RankedRows", "merge_parts"]

# Key in the order of the query, id, place in the shard's total order; then shard and row, so that no two are equal.
_Entry = tuple[float, bytes, int, int, int]
# Of a row: id, score, attributes, event time, best score.
_Facts = tuple[str, float, dict[str, float], int | None, float | None]


class RankedRows:
    """A PartialBatch read from the log, with a cache of what its queries share.

    Initially nothing is decoded. Id, score and attributes of a row are decoded when a result first shows the row; a
    ResultRow is made once per (row, rank) and shared by all results in which the row has that rank.
    """

    __slots__ = (
        "_arena",
        "_best",
        "_cells",
        "_ends",
        "_entries",
        "_facts",
        "_full",
        "_ranking",
        "_rows",
        "_scores",
        "batch",
        "hold",
    )

    def __init__(self, batch: PartialBatch, hold: Hold) -> None:
        self.batch = batch
        self.hold = hold
        self._ranking: list[int] = batch.ranking.tolist()
        self._scores: list[float] = batch.score.tolist()
        self._ends: list[int] = batch.id_ends.tolist()
        self._arena: bytes = batch.id_bytes.tobytes()
        self._cells: list[list[float]] | None = None
        self._full = False
        self._best: list[float] = batch.best.tolist()
        self._facts: dict[int, _Facts] = {}
        self._entries: list[_Entry] = []
        self._rows: dict[tuple[int, int], ResultRow] = {}

    def leading(self, evaluation: Evaluation, k: int) -> tuple[ResultRow, ...]:
        """Return the first k rows of an evaluation. Cost: a look-up a row, and the decoding of rows not seen before."""
        known = self._rows
        rows = []
        for place in enumerate(self._ranking[evaluation.start : min(evaluation.stop, evaluation.start + k)], 1):
            row = known.get(place)
            rows.append(self._make(place) if row is None else row)
        return tuple(rows)

    def row(self, index: int, rank: int) -> ResultRow:
        """Return row `index` at this rank."""
        row = self._rows.get((rank, index))
        return self._make((rank, index)) if row is None else row

    def entries(self, evaluation: Evaluation, k: int) -> list[_Entry]:
        """Return the first k rows of an evaluation as tuples that sort in the order of the query.

        Cost: a look-up a row; the first call makes the tuples of all rows.
        """
        entries = self._entries or self._make_entries()
        return [
            entries[index] for index in self._ranking[evaluation.start : min(evaluation.stop, evaluation.start + k)]
        ]

    def sequences(self, evaluation: Evaluation, k: int) -> list[int]:
        """Return the places of the first k rows of an evaluation in the shard's total order."""
        first = self._ranking[evaluation.start : min(evaluation.stop, evaluation.start + k)]
        return [int(self.batch.sequence[index]) for index in first]

    def _make(self, place: tuple[int, int]) -> ResultRow:
        rank, index = place
        facts = self._facts.get(index)
        if facts is None:
            facts = self._facts[index] = self._read(index)
        row = self._rows[place] = ResultRow(rank, *facts)
        return row

    def _make_entries(self) -> list[_Entry]:
        # Tuples of plain values, by zip: no reference back to this object (a cycle), no numpy scalar.
        batch, arena = self.batch, self._arena
        keys = (-batch.score).tolist() if batch.descending else self._scores
        ids = [arena[start:end] for start, end in pairwise((0, *self._ends))]
        places = range(len(ids))
        self._entries = list(
            zip(keys, ids, batch.sequence.tolist(), repeat(batch.shard, len(ids)), places, strict=True)
        )
        return self._entries

    def _id(self, index: int) -> bytes:
        return self._arena[self._ends[index - 1] if index else 0 : self._ends[index]]

    def _read(self, index: int) -> _Facts:
        batch = self.batch
        if self._cells is None:
            self._cells = batch.attributes.tolist()
            self._full = bool(batch.present.all())
        cells = self._cells[index]
        if self._full:
            attributes = dict(zip(batch.attribute_names, cells, strict=True))
        else:
            shown = zip(batch.attribute_names, cells, batch.present[index].tolist(), strict=True)
            attributes = {name: cell for name, cell, present in shown if present}
        time_us = int(batch.event_time_us[index]) if len(batch.event_time_us) else None
        best = self._best[index] if self._best else math.nan
        return self._id(index).decode(), self._scores[index], attributes, time_us, best if best == best else None


Part = tuple[RankedRows, Evaluation]


def merge_parts(parts: Mapping[int, Part], k: int) -> tuple[ResultRow, ...]:
    """Return the k best rows of the rankings of one evaluation, by shard.

    Cost: one shard, k look-ups; else a merge of the sorted runs (the sort finds them): m k comparisons for m shards
    with rows, no more than log m for each.
    """
    ranked = [part for part in parts.values() if part[1].stop > part[1].start]
    if len(ranked) == 1:
        rows, evaluation = ranked[0]
        return rows.leading(evaluation, k)
    candidates: list[_Entry] = []
    for rows, evaluation in ranked:
        candidates += rows.entries(evaluation, k)
    candidates.sort()
    return tuple([parts[shard][0].row(index, rank) for rank, (_, _, _, shard, index) in enumerate(candidates[:k], 1)])
