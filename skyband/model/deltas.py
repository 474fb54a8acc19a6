"""What changed between two results of one query."""

from collections.abc import Iterable, Iterator

from skyband.model.result import Change, Delta, Result, ResultRow

__all__ = ["apply_deltas", "deltas"]

_Identity = tuple[str, int | None, int]


def deltas(old: Result | None, new: Result) -> list[Delta]:
    """Return what turns `old` (None: nothing shown yet) into `new`: left, entered, moved, rescored, each by rank.

    An object with another rank has moved, whatever else changed; one that kept its rank but not its score or attributes
    is rescored, and so is one that could now reach something else, or is safe for another time. Where each record is an
    object, records of one id and time are told apart by their order.
    Cost: the number of rows.
    """
    before = old.rows if old is not None else ()
    if before == new.rows:
        return []
    known = dict(_identified(before))
    entered, moved, rescored = [], [], []
    for identity, row in _identified(new.rows):
        last = known.pop(identity, None)
        if last is None:
            entered.append(Delta(Change.ENTERED, row))
        elif last.rank != row.rank:
            moved.append(Delta(Change.MOVED, row, last.rank))
        elif last != row:
            rescored.append(Delta(Change.RESCORED, row, last.rank))
    left = [Delta(Change.LEFT, row, row.rank) for row in known.values()]
    return left + entered + moved + rescored


def apply_deltas(rows: Iterable[ResultRow], changes: Iterable[Delta]) -> tuple[ResultRow, ...]:
    """Return the rows of the newer result, from those of the older and the deltas between them."""
    by_rank = {row.rank: row for row in rows}
    arriving = []
    for delta in changes:
        # Ranks of the older result are all vacated before any is taken: moves may be circular.
        if delta.old_rank is not None:
            del by_rank[delta.old_rank]
        if delta.change is not Change.LEFT:
            arriving.append(delta.row)
    by_rank.update((row.rank, row) for row in arriving)
    return tuple(by_rank[rank] for rank in sorted(by_rank))


def _identified(rows: Iterable[ResultRow]) -> Iterator[tuple[_Identity, ResultRow]]:
    seen: dict[tuple[str, int | None], int] = {}
    for row in rows:
        name = row.object_id, row.event_time_us
        seen[name] = nth = seen.get(name, -1) + 1
        yield (*name, nth), row
