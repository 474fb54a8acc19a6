"""What the algorithms cannot serve, in words: why an attribute is unsteady, why a window cannot be forgotten."""

import math

from skyband.model.binding import BoundColumn, BoundQuery
from skyband.model.direction import is_always_finite
from skyband.model.duration import MAX_TIME_US, format_duration
from skyband.model.group import Group
from skyband.model.stream import Aggregate

__all__ = ["best_value", "is_promised", "why_not_forget", "why_not_listed", "why_unsteady"]

_EXTREMES = (Aggregate.BEST, Aggregate.MAX, Aggregate.MIN)


def why_unsteady(group: Group, bound: BoundQuery, column: BoundColumn) -> str | None:
    """Return why `column` is unsteady, in words that follow its name, or None if it is steady."""
    attribute = group.streams[column.stream].attributes[column.value]
    if column.steady or group.is_row_identity:
        return None
    if column.prefers_high is None:
        return "moves the score both up and down"
    if column.aggregate in (Aggregate.LATEST, Aggregate.FIRST):
        return f"is combined by {column.aggregate}: a good value can give way to a worse one"
    if column.aggregate is Aggregate.COUNT:
        return "is counted, and every further observation ranks its object lower"
    if column.aggregate is Aggregate.SUM:
        if attribute.lo < 0 < attribute.hi:
            return f"is summed, and its values may have either sign ({attribute.lo:g} to {attribute.hi:g})"
        return "is summed, and every further observation ranks its object lower"
    best = Aggregate.MAX if column.prefers_high else Aggregate.MIN
    if column.aggregate in (Aggregate.MAX, Aggregate.MIN) and column.aggregate is not best:
        better = "larger" if column.prefers_high else "smaller"
        return f"is combined by {column.aggregate}, but {better} values rank better: an observation can only harm"
    return f"counts {column.missing:g} while unseen, not its worst value: an observation can rank its object lower"


def is_promised(group: Group, bound: BoundQuery, column: BoundColumn, windows: int = 1) -> bool:
    """Return whether the stream of `column` promises that an object stays away for so many windows once it has come."""
    after, window = group.streams[column.stream].repeat_after_us, bound.query.window
    if after is None:
        return False
    return after >= (MAX_TIME_US if window.in_rows else windows * window.size)


def best_value(group: Group, column: BoundColumn) -> float:
    """Return the value of a steady attribute that ranks an object best; infinite if the stream declares none."""
    attribute = group.streams[column.stream].attributes[column.value]
    if column.aggregate is Aggregate.COUNT:
        return 1.0 if column.prefers_high else 0.0
    best = attribute.hi if column.prefers_high else attribute.lo
    if column.aggregate is Aggregate.SUM:
        # No observation adds nothing.
        return max(best, 0.0) if column.prefers_high else min(best, 0.0)
    return best


def why_not_forget(group: Group, bound: BoundQuery) -> str | None:
    """Return why an algorithm that keeps no window cannot answer, or None: see Haghani et al., CIKM 2009, sec. 3.2.

    It forgets an object whose best case is beaten: so no observation may harm, and the best case must be known.
    """
    if group.is_row_identity:
        return "every record is an object of its own, of which nothing is missing"
    for column in bound.columns:
        if why := _why_not_kept(group, bound, column):
            return why
    ends = [(c.missing, best_value(group, c)) for c in (bound.columns[place] for place in bound.score_positions)]
    if not is_always_finite(bound.score, [(min(pair), max(pair)) for pair in ends]):
        return f"score {bound.query.score!r} is not finite everywhere within the bounds of its attributes; narrow them"
    return None


def _why_not_kept(group: Group, bound: BoundQuery, column: BoundColumn) -> str | None:
    """Return why the value of an attribute cannot be kept without its window, or None."""
    name, stream = column.name, group.streams[column.stream]
    if column.in_score and (why := why_unsteady(group, bound, column)):
        return f"attribute {name!r} {why}"
    if column.aggregate not in _EXTREMES and not is_promised(group, bound, column):
        size = "never" if bound.query.window.in_rows else format_duration(bound.query.window.size)
        return (
            f"attribute {name!r} is combined by {column.aggregate} of all that an object has in the window; promise "
            f"repeat_after: {size} on stream {stream.name!r} if it comes but once"
        )
    if column.in_score and math.isinf(best_value(group, column)):
        side = "hi" if column.prefers_high else "lo"
        return f"the best case of attribute {name!r} has no bound; declare {side} on stream {stream.name!r}"
    return None


def why_not_listed(group: Group, bound: BoundQuery) -> str | None:
    """Return why one sorted list for each attribute cannot answer (the Threshold Algorithm), or None."""
    for column in bound.columns:
        if column.in_score and column.prefers_high is None:
            return f"the score both rises and falls with attribute {column.name!r}, which has no order of its own then"
    return None
