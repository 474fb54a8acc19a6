"""What is known of a group's streams, as tables and as a document."""

import statistics
import sys
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from skyband.cli.figures import as_time, count, span
from skyband.model.duration import MAX_TIME_US, format_duration
from skyband.model.published_statistics import PublishedStatistics
from skyband.model.statistics import LAG_QUANTILES, VALUE_QUANTILES, Estimate, PairStatistics

__all__ = ["print_statistics", "statistics_document"]

# Whose statistics are shown if nobody asks for others.
_SERVICE = "service"
# A table that nobody's screen bounds.
_UNBOUNDED = 100_000
# Shades of a share, from none to all: background and text.
_NONE, _ALL = (38, 42, 56), (255, 176, 64)
_LIGHT_FROM = 0.45
_S = 1_000_000


def print_statistics(found: PublishedStatistics) -> None:
    """Print tables to stdout: the streams, and which of them share objects; on a terminal with shades."""
    console = Console(width=None if sys.stdout.isatty() else _UNBOUNDED, highlight=False)
    console.print(_streams(found))
    if len(found.streams) > 1:
        console.print()
        console.print(Text("of the objects on a row's stream, the share that comes on a column's", style="dim"))
        console.print(_shares(found))
    console.print()
    for line in _footer(found):
        console.print(Text(line, style="dim"))


def statistics_document(found: PublishedStatistics) -> dict[str, Any]:
    """Return the statistics as plain values, fit for JSON; times in microseconds of event time."""
    told = found.statistics
    return {
        "group": found.group,
        "generation": found.generation,
        "window_start": told.at_us - told.window_us,
        "window_end": told.at_us,
        "from": None if found.from_us >= MAX_TIME_US else found.from_us,
        "sampled_share": told.rate,
        "sampled_objects": told.sampled_objects,
        "published": found.published_us,
        "source": found.source,
        "silent_shards": list(found.silent_shards),
        "other_sources": list(found.other_sources),
        "streams": [
            {
                "stream": name,
                "objects": _estimate(one.cardinality),
                "observations": observations,
                "second_moment": _estimate(one.second_moment),
                "repetition_bound": one.repetition_bound,
                "attributes": {
                    attribute: _quantiles(VALUE_QUANTILES, quantiles)
                    for attribute, quantiles in zip(attributes, one.value_quantiles, strict=False)
                },
            }
            for name, attributes, observations, one in zip(
                found.streams, found.attributes, found.observations, told.streams, strict=True
            )
        ],
        "pairs": [_pair(pair, found.streams) for pair in told.pairs],
    }


def _estimate(estimate: Estimate) -> dict[str, float]:
    return {"value": estimate.value, "error": estimate.error}


def _quantiles(levels: tuple[float, ...], values: tuple[float, ...] | tuple[int, ...]) -> dict[str, float]:
    return {f"{level:g}": value for level, value in zip(levels, values, strict=False)}


def _pair(pair: PairStatistics, names: tuple[str, ...]) -> dict[str, Any]:
    told = pair.appearance
    appearance = None
    if told is not None:
        appearance = {"value": told.probability, "error": told.error, "objects": told.objects}
    lag = _quantiles(LAG_QUANTILES, pair.lag_us)
    return {"given": names[pair.given], "stream": names[pair.stream], "appearance": appearance, "lag_us": lag}


def _streams(found: PublishedStatistics) -> Table:
    table = _table()
    table.add_column("stream", overflow="fold")
    for title in ("objects", "± error", "observations", "most often", "lag to others"):
        table.add_column(title, justify="right")
    for index, (name, observations, one) in enumerate(
        zip(found.streams, found.observations, found.statistics.streams, strict=True)
    ):
        often = f"≤ {one.repetition_bound:,.0f}" if observations else "–"
        objects, error = f"{one.cardinality.value:,.0f}", f"{one.cardinality.error:,.0f}"
        _add(table, name, objects, error, f"{observations:,}", often, _lag_to_others(found, index))
    return table


def _lag_to_others(found: PublishedStatistics, stream: int) -> str:
    """Return by how much an object typically comes later on this stream than on the others: a median of medians."""
    middle = LAG_QUANTILES.index(0.5)
    lags = [pair.lag_us[middle] for pair in found.statistics.pairs if pair.stream == stream and pair.lag_us]
    if not lags:
        return "?" if len(found.streams) > 1 else "–"
    lag_us = round(statistics.median(lags))
    length = f"{abs(lag_us) / 1_000:.0f} ms" if abs(lag_us) < _S else span(abs(lag_us) / _S)
    return f"{'−' if lag_us < 0 else '+'}{length}"


def _shares(found: PublishedStatistics) -> Table:
    table = _table()
    table.add_column("", overflow="fold")
    for name in found.streams:
        table.add_column(name, justify="right")
    for given, name in enumerate(found.streams):
        _add(table, name, *(_share(found, given, stream) for stream in range(len(found.streams))))
    return table


def _share(found: PublishedStatistics, given: int, stream: int) -> RenderableType:
    if given == stream:
        return Text("·", style="dim")
    told = found.statistics.pair(given, stream).appearance
    if told is None:
        return Text("?", style="dim")
    shade = ",".join(str(round(low + (high - low) * told.probability)) for low, high in zip(_NONE, _ALL, strict=True))
    return Text(
        f" {told.probability:.2f} ", style=f"{'black' if told.probability > _LIGHT_FROM else 'white'} on rgb({shade})"
    )


def _footer(found: PublishedStatistics) -> list[str]:
    told = found.statistics
    lines = [f"window of {format_duration(told.window_us)} up to {as_time(told.at_us)}"]
    if told.at_us - told.window_us < found.from_us < told.at_us:
        lines[0] += f"; what is known begins at {as_time(found.from_us)}"
    share = "all" if told.rate >= 1.0 else f"1 in {round(1 / told.rate):,}"
    lines.append(f"{count(told.sampled_objects, 'object')} sampled ({share}); errors are standard errors")
    if found.silent_shards:
        numbers = ", ".join(map(str, found.silent_shards))
        lines.append(f"without the objects of shards that have published nothing yet: {numbers}")
    if found.source != _SERVICE:
        lines.append(f"from {found.source}, made at {as_time(found.published_us)}")
    if found.other_sources:
        lines.append(f"there are more, with --source: {', '.join(found.other_sources)}")
    return lines


def _table() -> Table:
    return Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))


def _add(table: Table, *cells: RenderableType) -> None:
    table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells))
