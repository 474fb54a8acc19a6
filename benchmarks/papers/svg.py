"""Line charts as SVG, which a browser and a text editor can read.

Series differ in colour, in how dark it is, in their marker and in their dashes, so that they can be told apart in grey.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

__all__ = ["Chart"]

_WIDTH, _HEIGHT = 720, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 190, 44, 56

# Colour, dashes, marker: from dark to light and back, so that neighbours differ.
_LOOKS = (
    ("#1a1a2e", "", "circle"),
    ("#c1440e", "8 4", "square"),
    ("#2a7fb8", "", "triangle"),
    ("#e3a21a", "3 3", "diamond"),
    ("#4b6b3c", "10 3 2 3", "square"),
    ("#b39cd0", "", "circle"),
    ("#7a0c2e", "2 4", "triangle"),
    ("#6fc3b2", "6 2", "diamond"),
)

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Chart:
    """Lines with markers over two axes. `log_x`, `log_y`: the axis is logarithmic, and its values are above 0.

    `looks`: the number of a series' look, where it is to be the same on several charts.
    """

    title: str
    x: str
    y: str
    series: Mapping[str, Points]
    log_x: bool = False
    log_y: bool = False
    y_range: tuple[float, float] | None = None
    looks: Mapping[str, int] = field(default_factory=dict)

    def text(self) -> str:
        """Return the chart as a document."""
        xs = [x for points in self.series.values() for x, _ in points]
        ys = [y for points in self.series.values() for _, y in points]
        across = _Axis.over(min(xs), max(xs), self.log_x, sorted(set(xs)))
        low, high = self.y_range or ((min(ys) if self.log_y else 0.0), max(ys))
        up = _Axis.over(low, high, self.log_y, ())
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            'font-family="sans-serif" font-size="12">',
            f"<title>{escape(self.title)}</title>",
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
            f'<text x="{_LEFT}" y="24" font-size="15" font-weight="bold">{escape(self.title)}</text>',
            *self._axes(across, up),
        ]
        for place, (name, points) in enumerate(self.series.items()):
            parts += _line(place, self.looks.get(name, place), name, [(_x(across, x), _y(up, y)) for x, y in points])
        return "\n".join([*parts, "</svg>"]) + "\n"

    def _axes(self, across: "_Axis", up: "_Axis") -> list[str]:
        bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        parts = []
        for tick in up.ticks:
            at = _y(up, tick)
            parts.append(f'<line x1="{_LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}" stroke="#dddddd"/>')
            parts.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{_number(tick)}</text>')
        for tick in across.ticks:
            at = _x(across, tick)
            parts.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{bottom}" y2="{bottom + 5}" stroke="black"/>')
            parts.append(f'<text x="{at:.1f}" y="{bottom + 20}" text-anchor="middle">{_number(tick)}</text>')
        middle = (_TOP + bottom) / 2
        return [
            *parts,
            f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="black"/>',
            f'<text x="{(_LEFT + right) / 2}" y="{_HEIGHT - 14}" text-anchor="middle">{escape(self.x)}</text>',
            f'<text transform="translate(18 {middle}) rotate(-90)" text-anchor="middle">{escape(self.y)}</text>',
        ]


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    is_log: bool
    ticks: Sequence[float]

    @staticmethod
    def over(low: float, high: float, is_log: bool, given: Sequence[float]) -> "_Axis":
        """Return an axis from `low` to `high`; its ticks are those given, if they are few, else round ones."""
        if is_log:
            ticks = [m * 10.0**e for e in range(-9, 12) for m in (1, 2, 5)]
            ends = [t for t in ticks if t <= low * 1.0001][-1:], [t for t in ticks if t >= high * 0.9999][:1]
            low, high = (low, high) if given else (ends[0][0], ends[1][0])
            ticks = list(given) or [t for t in ticks if low <= t <= high]
            return _Axis(low, high, True, ticks)
        high = high if high > low else low + 1.0
        step = 10.0 ** math.floor(math.log10((high - low) / 4))
        step = next(step * m for m in (1, 2, 2.5, 5, 10) if (high - low) / (step * m) <= 6)
        if 0 < len(given) <= 9:
            return _Axis(low, high, False, given)
        high = math.ceil(high / step - 1e-9) * step
        count = round((high - low) / step)
        return _Axis(low, high, False, [low + i * step for i in range(count + 1)])

    def share(self, value: float) -> float:
        """Return how far along the axis a value lies, 0 to 1."""
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def _x(axis: _Axis, value: float) -> float:
    return _LEFT + 12 + axis.share(value) * (_WIDTH - _LEFT - _RIGHT - 24)


def _y(axis: _Axis, value: float) -> float:
    return _HEIGHT - _BOTTOM - axis.share(value) * (_HEIGHT - _TOP - _BOTTOM)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.4g}"


def _line(place: int, look: int, name: str, points: Points) -> list[str]:
    """Return a series, and its line in the legend."""
    colour, dashes, marker = _LOOKS[look % len(_LOOKS)]
    style = f'fill="none" stroke="{colour}" stroke-width="2"' + (f' stroke-dasharray="{dashes}"' if dashes else "")
    legend_x, legend_y = _WIDTH - _RIGHT + 16, _TOP + 12 + 22 * place
    ends = ((legend_x, legend_y), (legend_x + 30, legend_y))
    return [
        f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" {style}/>',
        *(_marker(marker, colour, x, y) for x, y in points),
        f'<polyline points="{" ".join(f"{x},{y}" for x, y in ends)}" {style}/>',
        _marker(marker, colour, legend_x + 15, legend_y),
        f'<text x="{legend_x + 38}" y="{legend_y + 4}">{escape(name)}</text>',
    ]


def _marker(shape: str, colour: str, x: float, y: float) -> str:
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
    corners = {
        "square": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
        "triangle": ((0, -5), (5, 4), (-5, 4)),
        "diamond": ((0, -6), (5, 0), (0, 6), (-5, 0)),
    }[shape]
    return f'<polygon points="{" ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in corners)}" fill="{colour}"/>'
