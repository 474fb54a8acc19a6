"""What the statistics say of the streams of a query, in words: how many objects, which come on two, how much later.

At most `_STREAMS` streams and `_PAIRS` ordered pairs are shown. First come the streams that *move* the score most: by
how much it changes when their values, at their medians, become what counts while unseen, all else at its median; and
the pairs with most of that still to come, the chance times the move of the second stream.
"""

import math
from collections.abc import Mapping

from skyband.control.knowledge import Knowledge
from skyband.control.wording import instant, lines, plural, span
from skyband.model.binding import BoundColumn, BoundQuery
from skyband.model.direction import score_bounds
from skyband.model.duration import format_duration
from skyband.model.group import Group
from skyband.model.published_statistics import PublishedStatistics
from skyband.model.query import Window
from skyband.model.statistics import LAG_QUANTILES, VALUE_QUANTILES, Estimate, PairStatistics
from skyband.model.stream import Aggregate
from skyband.structures.coordinated_sample import LEAST_OBJECTS

__all__ = ["estimated", "known_streams"]

_STREAMS = 8
_PAIRS = 6
_S = 1_000_000


def known_streams(group: Group, bound: BoundQuery, knowledge: Knowledge) -> list[str]:
    """Return lines under a heading. Cost: for each attribute of the score its length; the pairs of its streams."""
    found = knowledge.statistics
    if found is None:
        why = knowledge.why_unknown or (
            "nothing is published of these streams yet; the sketch service makes statistics, every 5 s once rows come"
        )
        return ["statistics", f"  unknown: {why}"]
    head = [_heading(found, bound.query.window, knowledge.now_us), *_reservations(found)]
    moves = _moves(bound, found)
    # Of the streams that are only required a reader wants to know how many objects they have; they move no score.
    streams = sorted({column.stream for column in bound.columns}, key=lambda stream: (-moves.get(stream, 0.0), stream))
    shown = sorted(streams[:_STREAMS])
    pairs = [] if group.is_row_identity else _pairs(found, moves)
    text = [
        *head,
        *lines([_stream(group, bound, found, stream) for stream in shown]),
        *lines([_pair(found, pair) for pair in pairs[:_PAIRS]]),
    ]
    return text + _rest(group.name, len(streams) - len(shown), max(0, len(pairs) - _PAIRS))


def estimated(estimate: Estimate, noun: str) -> str:
    """Return a number with its standard error: ``1,240 ± 105 objects``, without one if it is certain."""
    error = f" ± {estimate.error:,.0f}" if estimate.error else ""
    return f"{estimate.value:,.0f}{error} {noun}"


def _heading(found: PublishedStatistics, window: Window, now_us: int) -> str:
    told = found.statistics
    until = instant(told.at_us, now_us)
    text = f"statistics of the {format_duration(told.window_us)} up to {until}"
    if window.in_rows:
        text += f" (the query's window is {window.size:,} rows)"
    elif window.size != told.window_us:
        text += f" (the query's window is {format_duration(window.size)})"
    return f"{text}, published {span(now_us - found.published_us)} ago; ± is a standard error"


def _reservations(found: PublishedStatistics) -> list[str]:
    """Return what the statistics leave out."""
    told, text = found.statistics, []
    if told.at_us - told.window_us < found.from_us < told.at_us:
        known = span(told.at_us - found.from_us)
        text.append(f"  not a full window yet: no more than its last {known} is known")
    if found.silent_shards:
        numbers = ", ".join(map(str, found.silent_shards[:8])) + (", …" if len(found.silent_shards) > 8 else "")
        text.append(f"  without the objects of shards that have published nothing yet: {numbers}")
    return text


def _stream(group: Group, bound: BoundQuery, found: PublishedStatistics, stream: int) -> tuple[str, ...]:
    name = group.streams[stream].name
    own = [column.name for column in bound.columns if column.stream == stream and column.in_score]
    if own and own != [name]:
        name = f"{name} ({', '.join(own)})"
    observations = found.observations[stream]
    if not observations:
        return name, "no observation"
    if group.is_row_identity:
        return name, plural(observations, "record")
    objects = found.statistics.streams[stream].cardinality
    return name, estimated(objects, "objects"), plural(observations, "observation")


def _pair(found: PublishedStatistics, pair: PairStatistics) -> tuple[str, ...]:
    name = f"{found.streams[pair.given]} → {found.streams[pair.stream]}"
    told = pair.appearance
    if told is None:
        return name, f"unknown: too few objects tell so, {LEAST_OBJECTS} are needed"
    if told.objects < LEAST_OBJECTS:
        return (
            name,
            f"unknown: {plural(told.objects, 'object tells so', 'objects tell so')}, {LEAST_OBJECTS} are needed",
        )
    chance = f"{told.probability:.2f} ± {told.error:.2f} of its objects come there too ({told.objects:,} sampled)"
    return name, chance, _later(pair.lag_us)


def _later(lag_us: tuple[int, ...]) -> str:
    if not lag_us:
        return "lag unknown"
    median_us = lag_us[LAG_QUANTILES.index(0.5)]
    if median_us == 0:
        return "median lag 0"
    length_us = abs(median_us)
    length = f"{length_us / 1_000:,.0f} ms" if length_us < _S else span(length_us)
    return f"median {length} {'later' if median_us > 0 else 'earlier'}"


def _pairs(found: PublishedStatistics, moves: Mapping[int, float]) -> list[PairStatistics]:
    """Return the ordered pairs of the score's streams, most still to come first, what is unknown last."""

    def worth(pair: PairStatistics) -> float:
        told = pair.appearance
        if told is None or told.objects < LEAST_OBJECTS:
            return -1.0
        return told.probability * moves[pair.stream]

    pairs = [pair for pair in found.statistics.pairs if pair.given in moves and pair.stream in moves]
    return sorted(pairs, key=lambda pair: -worth(pair))


def _rest(group: str, streams: int, pairs: int) -> list[str]:
    """Return what was left out, and by which rule."""
    counts = [plural(number, noun) for number, noun in ((streams, "stream"), (pairs, "pair")) if number]
    if not counts:
        return []
    rule = "shown is what moves the score most: a stream's median value, a pair's chance times that of its second"
    return [f"  … {' and '.join(counts)} more: skyband streams stats {group} ({rule})"]


def _moves(bound: BoundQuery, found: PublishedStatistics) -> dict[int, float]:
    """Return for each stream of the score how far its median values move the score from where it is without them."""
    columns = [bound.columns[place] for place in bound.score_positions]
    medians = [_median(column, found) for column in columns]
    middle = _score(bound, medians)
    moves = {}
    for stream in sorted({column.stream for column in columns}):
        unseen = [
            column.missing if column.stream == stream else median
            for column, median in zip(columns, medians, strict=True)
        ]
        move = abs(_score(bound, unseen) - middle)
        moves[stream] = move if math.isfinite(move) else 0.0
    return moves


def _median(column: BoundColumn, found: PublishedStatistics) -> float:
    """Return the median value of an attribute; what counts while it is unseen, if no value is known."""
    if column.aggregate is Aggregate.COUNT:
        return 1.0
    quantiles = found.statistics.streams[column.stream].value_quantiles
    return quantiles[column.value][VALUE_QUANTILES.index(0.5)] if column.value < len(quantiles) else column.missing


def _score(bound: BoundQuery, values: list[float]) -> float:
    low, high = score_bounds(bound.score, [(value, value) for value in values])
    return low if low == high else (low + high) / 2
