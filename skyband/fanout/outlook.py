"""What could still happen to a result: who outside could come in, and which of its rows are safe.

Best scores in order, k = 3, two candidates asked for (n: unbounded)::

    best    n    90   80   70   60   50        members a, b, c score 75, 65, 55
    object  x    a    y    b    z    c         candidates: x and y; z could beat c, too
    a       x and y could beat its 75: fewer than 3, so it is safe
    b       x, a, y and b itself could beat 65: three others, so it is not
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from skyband.fanout.ranked_rows import Part
from skyband.model.partials import Contender, Evaluation
from skyband.model.query import Window
from skyband.model.result import Candidate, ResultRow

__all__ = ["outlook_of", "size_of"]

# Best score in the order of the query (unbounded: before all), then the id.
_Key = tuple[float, bytes]


def size_of(evaluation: Evaluation) -> int:
    """Return how many rows and contenders an evaluation holds."""
    return evaluation.stop - evaluation.start + len(evaluation.contenders)


def outlook_of(
    parts: Mapping[int, Part], rows: Sequence[ResultRow], k: int, candidates: int, window: Window
) -> tuple[tuple[ResultRow, ...], tuple[Candidate, ...]]:
    """Return the rows with `safe_until`, and the first `candidates` objects that could come in.

    `rows` are those merged of `parts`, at most k. Cost: the contenders of all parts, sorted.
    """
    batches = [part[0].batch for part in parts.values()]
    if not batches:
        return tuple(rows), ()
    if any(len(batch.event_time_us) for batch in batches):
        return _of_records(parts, rows, window), ()
    descending, names = batches[0].descending, batches[0].attribute_names
    found = [contender for _, evaluation in parts.values() for contender in evaluation.contenders]
    placed = [(_key(contender.best_score, contender.object_id, descending), contender) for contender in found]
    placed.sort(key=itemgetter(0))
    keys = [key for key, _ in placed]
    members = {row.object_id for row in rows}
    last = None if len(rows) < k else _key(rows[k - 1].score, rows[k - 1].object_id, descending)
    outside = (
        contender for key, contender in placed if contender.object_id not in members and (last is None or key < last)
    )
    own = {contender.object_id: (key, contender) for key, contender in placed if contender.object_id in members}
    safe = tuple(replace(row, safe_until=_safe_until(own.get(row.object_id), keys, row, k, descending)) for row in rows)
    return safe, tuple(_first(outside, candidates, names))


def _first(contenders: Iterable[Contender], most: int, names: Sequence[str]) -> Iterable[Candidate]:
    for _, contender in zip(range(most), contenders, strict=False):
        yield Candidate(
            object_id=contender.object_id,
            score=contender.score,
            best_score=contender.best_score,
            lacks=tuple(names[place] for place in contender.lacks),
            until=contender.until,
        )


def _safe_until(
    own: tuple[_Key, Contender] | None, keys: Sequence[_Key], row: ResultRow, k: int, descending: bool
) -> int | None:
    """Return until when a row is safe. If it is no contender of its shard, enough others could beat it there alone."""
    if own is None:
        return None
    now = _key(row.score, row.object_id, descending)
    others = bisect_left(keys, now) - (own[0] < now)
    return own[1].until if others < k else None


def _of_records(parts: Mapping[int, Part], rows: Sequence[ResultRow], window: Window) -> tuple[ResultRow, ...]:
    """Return rows that are records: none known now can overtake them, so that they are safe until they expire."""
    if window.in_rows:
        # One shard has them all; the place in its order is the number of the row.
        ((ranked, evaluation),) = parts.values()
        begins = ranked.sequences(evaluation, len(rows))
    else:
        begins = [row.event_time_us or 0 for row in rows]
    size, slide = window.size, window.slide
    return tuple(
        replace(row, safe_until=(begin + size) // slide * slide) for row, begin in zip(rows, begins, strict=True)
    )


def _key(score: float | None, object_id: str, descending: bool) -> _Key:
    if score is None:
        return float("-inf"), object_id.encode()
    return -score if descending else score, object_id.encode()
