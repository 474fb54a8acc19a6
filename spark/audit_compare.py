"""Compares what was written for one window with what should have been, in plain Python.

Scores are equal up to 1e-9 of the larger, and by how much a sum in another order may differ; rows whose true scores are
equal so may stand in either order, and in each other's place at the end.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["TOLERANCE", "Difference", "Found", "FoundRow", "Kind", "TrueRow", "differences", "recall"]

TOLERANCE = 1e-9


class Kind(StrEnum):
    """How a result can differ from the truth."""

    MISSING_RESULT = "missing result"
    UNEXPECTED_RESULT = "unexpected result"
    DUPLICATE = "duplicate"
    MISSING_ROW = "missing row"
    EXTRA_ROW = "extra row"
    WRONG_RANK = "wrong rank"
    WRONG_SCORE = "wrong score"
    WRONG_ATTRIBUTE = "wrong attribute"
    WRONG_WINDOW = "wrong window"


@dataclass(frozen=True, slots=True)
class TrueRow:
    """A row as it should be, its attributes by name; `slack` is by how much its sums may differ."""

    object_id: str
    score: float
    attributes: dict[str, float]
    event_us: int | None = None
    slack: float = 0.0


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row as it was written."""

    rank: int
    object_id: str
    score: float
    attributes: dict[str, float]
    event_us: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A result as it was written."""

    window_start: int
    rows: tuple[FoundRow, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference; `expected` and `found` in words or numbers, None where there is none."""

    kind: Kind
    object_id: str | None = None
    expected: str | None = None
    found: str | None = None


_Key = tuple[str, int | None, int]


def differences(found: Found, true: Sequence[TrueRow], ks: frozenset[int], window_start: int) -> Iterator[Difference]:
    """Yield how a result differs. `true` has k rows and some more, best first; `ks` are those that may hold."""
    if found.window_start != window_start:
        yield Difference(Kind.WRONG_WINDOW, expected=str(window_start), found=str(found.window_start))
    rows = sorted(found.rows, key=lambda row: row.rank)
    sizes = {min(k, len(true)) for k in ks}
    # Of the sizes that may be, that which explains the result best.
    size = min(sizes, key=lambda size: abs(size - len(rows)))
    theirs = dict(zip(_keys([(row.object_id, row.event_us) for row in rows]), rows, strict=True))
    everything = dict(zip(_keys([(row.object_id, row.event_us) for row in true]), true, strict=True))
    due = list(everything)[:size]
    missing = [key for key in due if key not in theirs]
    extra = [key for key in theirs if key not in due]
    _pair_off(missing, extra, everything, true[size - 1] if size else None)
    for key in missing:
        row = everything[key]
        yield Difference(Kind.MISSING_ROW, row.object_id, f"rank {due.index(key) + 1}, score {row.score!r}")
    for key in extra:
        their = theirs[key]
        yield Difference(Kind.EXTRA_ROW, their.object_id, None, f"rank {their.rank}, score {their.score!r}")
    common = [key for key in theirs if key in everything and key not in extra]
    yield from _ranks(common, list(theirs), due, theirs, everything)
    for key in common:
        yield from _values(theirs[key], everything[key])


def recall(found: Sequence[FoundRow], true: Sequence[TrueRow], k: int) -> tuple[int, int]:
    """Return how many of the k best objects were shown, and how many there are."""
    due = {row.object_id for row in true[:k]}
    return len(due & {row.object_id for row in found}), len(due)


def _keys(rows: Sequence[tuple[str, int | None]]) -> list[_Key]:
    """Return what tells the rows of one result apart: where each record is an object, ids may repeat."""
    seen: Counter[tuple[str, int | None]] = Counter()
    keys = []
    for row in rows:
        keys.append((*row, seen[row]))
        seen[row] += 1
    return keys


def _pair_off(missing: list[_Key], extra: list[_Key], everything: dict[_Key, TrueRow], last: TrueRow | None) -> None:
    """Take out rows beyond the last that stand for others: all of them as good as the last one."""
    if last is None:
        return
    near = [key for key in extra if key in everything and _near(everything[key], last)]
    ousted = [key for key in reversed(missing) if _near(everything[key], last)]
    for come, gone in zip(near, ousted, strict=False):
        extra.remove(come)
        missing.remove(gone)


def _ranks(
    common: list[_Key],
    order: list[_Key],
    due: list[_Key],
    theirs: dict[_Key, FoundRow],
    everything: dict[_Key, TrueRow],
) -> Iterator[Difference]:
    """Yield rows out of order among those that are right, and ranks that are no places."""
    places = {key: place for place, key in enumerate(everything)}
    as_due = sorted(common, key=places.__getitem__)
    for key, other in zip(common, as_due, strict=True):
        rank, place = theirs[key].rank, order.index(key) + 1
        if key != other and not _near(everything[key], everything[other]):
            yield Difference(Kind.WRONG_RANK, key[0], str(places[key] + 1), str(rank))
        elif rank not in (place, places[key] + 1):
            yield Difference(Kind.WRONG_RANK, key[0], str(place), str(rank))


def _values(found: FoundRow, true: TrueRow) -> Iterator[Difference]:
    if not _same(found.score, true.score, true.slack):
        yield Difference(Kind.WRONG_SCORE, true.object_id, repr(true.score), repr(found.score))
    for name in sorted(found.attributes.keys() | true.attributes.keys()):
        got, due = found.attributes.get(name), true.attributes.get(name)
        if got is None or due is None or not _same(got, due, true.slack):
            yield Difference(Kind.WRONG_ATTRIBUTE, true.object_id, _named(name, due), _named(name, got))


def _named(name: str, value: float | None) -> str:
    return f"no {name}" if value is None else f"{name} {value!r}"


def _near(one: TrueRow, other: TrueRow) -> bool:
    return _same(one.score, other.score, max(one.slack, other.slack))


def _same(one: float, other: float, slack: float) -> bool:
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=slack)
