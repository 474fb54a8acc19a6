"""The pictures of the report of statistics, as SVG: one colour scale, from few to many, and dark text."""

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from skyband.model.published_statistics import PublishedStatistics
from skyband.model.statistics import Appearance

__all__ = ["MOST_ROWS", "appearances", "cardinalities", "known_lags", "lags", "repetition", "subsets", "values"]

# A picture with more rows is none that anybody reads.
MOST_ROWS = 40
_WIDTH_IN = 8.6
# So few shades that the scale beside the map is drawn, not an image.
_SCALE = LinearSegmentedColormap.from_list("skyband", ["#f3f7fb", "#a9c8e4", "#3f7fb5", "#0f3557"], N=40)
_MARK, _SOFT, _TEXT, _GRID = "#245e91", "#a9c8e4", "#1b2733", "#dde4ea"
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 9.5,
    "font.family": "DejaVu Sans",
    "text.color": _TEXT,
    "axes.labelcolor": _TEXT,
    "axes.edgecolor": _GRID,
    "xtick.color": _TEXT,
    "ytick.color": _TEXT,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "axes.axisbelow": True,
}
_NUMBERS_UP_TO = 14
_UNITS = ((86_400e6, "days"), (3_600e6, "hours"), (60e6, "minutes"), (1e6, "seconds"), (1e3, "milliseconds"))
_NO_METADATA: dict[str, Any] = dict.fromkeys(("Date", "Creator", "Format", "Type"))
_DARK_FROM = 0.55


def cardinalities(found: PublishedStatistics) -> str:
    """Return bars of the objects of each stream, with standard errors."""
    told = [one.cardinality for one in found.statistics.streams]

    def draw(axes: Axes) -> None:
        places = np.arange(len(told))
        axes.barh(places, [its.value for its in told], height=0.62, color=_SOFT)
        axes.errorbar(
            [its.value for its in told],
            places,
            xerr=[its.error for its in told],
            fmt="o",
            ms=4,
            color=_MARK,
            capsize=3,
            lw=1.3,
        )
        _rows(axes, found.streams)
        axes.set_xlim(left=0)
        axes.set_xlabel("distinct objects (bar and point), ± one standard error")
        axes.xaxis.set_major_formatter(FuncFormatter(_thousands))

    return _svg("cardinalities", draw, len(told))


def appearances(found: PublishedStatistics) -> str:
    """Return the heat map of which share of a row's objects comes on a column's stream too."""
    names, size = found.streams, len(found.streams)
    shares = np.full((size, size), np.nan)
    for pair in found.statistics.pairs:
        if pair.appearance is not None:
            shares[pair.given, pair.stream] = pair.appearance.probability

    def draw(axes: Axes) -> None:
        # Squares, not an image: they stay sharp at any size.
        edges = np.arange(size + 1) - 0.5
        image = axes.pcolormesh(
            edges, edges, np.ma.masked_invalid(shares), cmap=_SCALE, vmin=0.0, vmax=1.0, edgecolors="white", lw=1.5
        )
        axes.set_aspect("equal")
        axes.invert_yaxis()
        axes.set_xticks(range(size), names, rotation=35 if size > 4 else 0, ha="right" if size > 4 else "center")
        axes.set_yticks(range(size), names)
        axes.set_xlabel("comes on this stream too")
        axes.set_ylabel("objects of this stream")
        for given, stream in np.ndindex(size, size) if size <= _NUMBERS_UP_TO else ():
            share = shares[given, stream]
            text = "·" if given == stream else "?" if np.isnan(share) else f"{share:.2f}"
            axes.text(stream, given, text, ha="center", va="center", color="white" if share > _DARK_FROM else _TEXT)
        bar = axes.figure.colorbar(image, ax=axes, fraction=0.04, pad=0.03)
        bar.set_label("share of objects, 0 to 1")
        bar.outline.set_visible(False)

    # No wider than the squares are high, so that map and scale stand together at the left.
    row_in = 0.5 if size <= _NUMBERS_UP_TO else 0.22
    width_in = min(_WIDTH_IN, row_in * size + 2.9)
    return _svg("appearances", draw, size, row_in=row_in, extra_in=1.5, width_in=width_in, grid=False)


def known_lags(found: PublishedStatistics) -> list[tuple[str, tuple[int, ...]]]:
    """Return each pair of which lags are known, once, with its quantiles; those apart the most first."""
    pairs = [its for its in found.statistics.pairs if its.lag_us and its.given < its.stream]
    pairs.sort(key=lambda its: -abs(its.lag_us[1]))
    return [(f"{found.streams[its.given]} → {found.streams[its.stream]}", its.lag_us) for its in pairs]


def lags(found: PublishedStatistics) -> str:
    """Return a line for each pair from the 5 % to the 95 % quantile of its lags, with a point at the median."""
    told = known_lags(found)[:MOST_ROWS]
    unit, name = _time_unit(max((abs(lag) for _, its in told for lag in its), default=0))

    def draw(axes: Axes) -> None:
        places = np.arange(len(told))
        axes.axvline(0, color=_TEXT, lw=0.8)
        axes.hlines(places, [its[0] / unit for _, its in told], [its[2] / unit for _, its in told], color=_SOFT, lw=6)
        axes.plot([its[1] / unit for _, its in told], places, "o", color=_MARK, ms=6)
        _rows(axes, [label for label, _ in told])
        axes.set_xlabel(f"how much later on the second stream, {name}: 5 % to 95 %, point at the median")

    return _svg("lags", draw, len(told))


def values(found: PublishedStatistics) -> str:
    """Return a box for each attribute, on a scale of its own: 5, 25, 50, 75 and 95 % of its objects' latest values.

    Attributes of which too little is known are left out.
    """
    told = [
        (name, quantiles)
        for names, one in zip(found.attributes, found.statistics.streams, strict=True)
        for name, quantiles in zip(names, one.value_quantiles, strict=False)
    ][:MOST_ROWS]

    def draw(axes: Axes) -> None:
        for place, (_, (low, first, middle, third, high)) in enumerate(told):
            # Each row is as wide as its own values are spread; alike values stand in the middle.
            at = np.interp([first, middle, third], [low, high], [0.0, 1.0]) if high > low else np.full(3, 0.5)
            axes.hlines(place, 0 if high > low else 0.5, 1 if high > low else 0.5, color=_SOFT, lw=2)
            axes.barh(place, at[2] - at[0], left=at[0], height=0.42, color=_SOFT)
            axes.plot([at[1]], [place], "o", color=_MARK, ms=6)
            axes.text(-0.015, place, _short(low), ha="right", va="center", size=8.5)
            axes.text(1.015, place, _short(high), ha="left", va="center", size=8.5)
            axes.text(at[1], place - 0.29, _short(middle), ha="center", va="bottom", size=8.5)
        _rows(axes, [name for name, _ in told])
        axes.set_ylim(len(told) - 0.5, -0.75)
        axes.set_xlim(-0.16, 1.16)
        axes.set_xticks([])
        axes.set_xlabel("in the attribute's own unit; box: the middle half, line: 5 % to 95 %, point: median")

    return _svg("values", draw, len(told), row_in=0.48, extra_in=0.5, grid=False)


def repetition(found: PublishedStatistics) -> str:
    """Return for each stream with rows, at least one, how often an object comes on average, and never exceeds."""
    told = [
        (name, rows / max(one.cardinality.value, 1.0), max(one.repetition_bound, 1.0))
        for name, rows, one in zip(found.streams, found.observations, found.statistics.streams, strict=True)
        if rows
    ]
    names, means, bounds = zip(*told, strict=True)

    def draw(axes: Axes) -> None:
        places = np.arange(len(told))
        axes.hlines(places, means, bounds, color=_SOFT, lw=4)
        axes.plot(means, places, "o", color=_MARK, ms=6)
        axes.plot(bounds, places, "|", color=_MARK, ms=14, mew=2)
        _rows(axes, names)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(_thousands))
        axes.set_xlabel("observations of one object: point on average, mark: no object has more, logarithmic")

    return _svg("repetition", draw, len(told))


def subsets(labels: Sequence[str], told: Sequence[Appearance | None]) -> str:
    """Return a point with its standard error for each subset that is known."""
    known = [(label, its) for label, its in zip(labels, told, strict=True) if its is not None][:MOST_ROWS]

    def draw(axes: Axes) -> None:
        places = np.arange(len(known))
        chances = [its.probability for _, its in known]
        axes.barh(places, chances, height=0.62, color=_SOFT)
        axes.errorbar(
            chances, places, xerr=[its.error for _, its in known], fmt="o", ms=4, color=_MARK, capsize=3, lw=1.3
        )
        _rows(axes, [label for label, _ in known])
        axes.set_xlim(0, 1.02)
        axes.set_xlabel("share of objects that comes on the other stream, 0 to 1, ± one standard error")

    return _svg("subsets", draw, len(known))


def _rows(axes: Axes, names: Sequence[str]) -> None:
    """Name rows from top to bottom."""
    axes.set_yticks(range(len(names)), [name if len(name) <= 40 else f"{name[:39]}…" for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)


def _svg(
    salt: str,
    draw: Callable[[Axes], None],
    rows: int,
    *,
    row_in: float = 0.36,
    extra_in: float = 0.75,
    width_in: float = _WIDTH_IN,
    grid: bool = True,
) -> str:
    with rc_context({**_STYLE, "svg.hashsalt": salt}):
        figure = Figure(figsize=(width_in, row_in * max(1, rows) + extra_in), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        _plain(axes)
        if grid:
            axes.grid(axis="x", color=_GRID, lw=0.8)
        return _written(figure)


def _plain(axes: Axes) -> None:
    for spine in axes.spines.values():
        spine.set_visible(False)


def _written(figure: Figure) -> str:
    """Return a figure as an element of a page: nothing that names another place, no ids that two pictures share."""
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata=_NO_METADATA)
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    named = set(re.findall(r'#([^")]+)[")]', text))
    text = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in named else "", text)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text).replace("xlink:href", "href")
    return text.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif").strip()


def _time_unit(longest_us: float) -> tuple[float, str]:
    for unit, name in _UNITS:
        if longest_us >= 2 * unit:
            return unit, name
    return 1.0, "microseconds"


def _thousands(value: float, _: int) -> str:
    return f"{value:,.0f}" if value >= 1 or value == 0 else f"{value:g}"


def _short(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")
