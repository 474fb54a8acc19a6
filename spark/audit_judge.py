"""Judges window after window: what is due there, what was written, and how the two differ."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from spark.audit_activity import Activity, Status
from spark.audit_compare import Difference, Found, Kind, TrueRow, differences, recall
from spark.audit_results import read_found

__all__ = ["Brief", "Placed", "Tally", "judge"]

# So many differences of a task are told; all are counted.
_TOLD = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """What must be known of a query to judge its windows, which end in [first, last]."""

    activity: Activity
    first: int
    last: int
    size: int
    slide: int
    attributes: tuple[str, ...]
    is_approximate: bool


@dataclass(frozen=True, slots=True)
class Placed:
    """A difference and where it is."""

    uid: str
    window_end: int
    difference: Difference


@dataclass(slots=True)
class Tally:
    """What was found: counts by (uid, what), and the first differences."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    told: list[Placed] = field(default_factory=list)

    def add(self, uid: str, window_end: int, found: Iterable[Difference]) -> None:
        """Take in the differences of a window."""
        for difference in found:
            self.counts[uid, difference.kind] += 1
            if len(self.told) < _TOLD:
                self.told.append(Placed(uid, window_end, difference))

    def merge(self, text: str) -> None:
        """Take in what `dump` returned."""
        counts, told = json.loads(text)
        for uid, what, count in counts:
            self.counts[uid, what] += count
        for uid, window_end, its in told:
            self.told.append(Placed(uid, window_end, Difference(**{**its, "kind": Kind(its["kind"])})))

    def dump(self) -> str:
        """Return all of it as text."""
        counts = [[uid, what, count] for (uid, what), count in self.counts.items()]
        return json.dumps([counts, [[its.uid, its.window_end, asdict(its.difference)] for its in self.told]])


def judge(windows: DataFrame, briefs: Mapping[str, Brief]) -> Tally:
    """Return what is to be said of these windows, as `gathered` gives them."""
    tally = Tally()
    for row in windows.mapInArrow(partial(_judge_all, briefs), "tally string").collect():
        tally.merge(row.tally)
    tally.told.sort(key=lambda its: (its.window_end, its.uid))
    return tally


def _judge_all(briefs: Mapping[str, Brief], windows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    tally = Tally()
    for batch in windows:
        for row in batch.to_pylist():
            brief = briefs[row["uid"]]
            if brief.first <= row["window_end"] <= brief.last:
                _judge(brief, row, tally)
    yield pa.RecordBatch.from_pydict({"tally": [tally.dump()]})


def _judge(brief: Brief, row: Mapping[str, Any], tally: Tally) -> None:
    uid, end = row["uid"], row["window_end"]
    status, ks = brief.activity.at(end)
    true = _true(row["rows"] or (), brief.attributes)
    found = [read_found(text) for text in row["found"]]
    if status is Status.UNKNOWN:
        tally.counts[uid, "unknown"] += 1
    elif brief.is_approximate:
        # What it may show is not known, but what it should.
        if status is Status.DUE:
            tally.counts[uid, "windows"] += 1
            shown, due = recall(found[0].rows if found else (), true, max(ks))
            tally.counts[uid, "shown"] += shown
            tally.counts[uid, "due"] += due
    else:
        tally.counts[uid, "windows"] += 1
        tally.counts[uid, "rows"] += min(len(true), max(ks, default=0))
        tally.counts[uid, "optional"] += status is Status.MAYBE
        tally.add(uid, end, (Difference(Kind.DUPLICATE) for _ in found[1:]))
        if found:
            tally.add(uid, end, _judge_found(brief, end, row, found[0], true))
        elif status is Status.DUE and (true or (row["was_shown"] and _is_due(brief, end - brief.slide))):
            tally.add(uid, end, [Difference(Kind.MISSING_RESULT, expected=_size(min(len(true), max(ks))))])


def _judge_found(
    brief: Brief, end: int, row: Mapping[str, Any], found: Found, true: Sequence[TrueRow]
) -> Iterable[Difference]:
    status, ks = brief.activity.at(end)
    if status is not Status.NOT and end % brief.slide == 0:
        if true:
            return differences(found, true, ks, end - brief.size)
        # An empty result takes away rows that were shown, also those before a pause, or before all that is known here.
        begins = end == brief.first or not _is_due(brief, end - brief.slide)
        if not found.rows and (row["was_shown"] or begins):
            return ()
    return [Difference(Kind.UNEXPECTED_RESULT, found=_size(len(found.rows)))]


def _is_due(brief: Brief, end: int) -> bool:
    return brief.activity.at(end)[0] is Status.DUE


def _true(rows: Iterable[Mapping[str, Any]], names: Sequence[str]) -> list[TrueRow]:
    return [
        TrueRow(
            row["object_id"],
            row["score"],
            {name: value for name, value in zip(names, row["attributes"], strict=True) if value is not None},
            row["event_us"],
            row["slack"],
        )
        for row in rows
    ]


def _size(rows: int) -> str:
    return "no rows" if not rows else f"{rows:,} row{'s' if rows > 1 else ''}"
