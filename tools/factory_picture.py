"""Draws docs/factory.svg: the worked example of the docs on a time line.

Rows come from the golden case tests/golden/factory, release times and rankings from the brute force; nothing in the
picture is typed in. Run it after the case has changed: ``.venv/bin/python -m tools.factory_picture``.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from skyband.files.definitions import load_definitions
from skyband.local.brute_force import Partitions, Row, Seen, accepted, brute_force_results
from skyband.model.definitions import Definitions

ROOT = Path(__file__).resolve().parent.parent
CASE = ROOT / "tests" / "golden" / "factory"
PICTURE = ROOT / "docs" / "factory.svg"

FIRST_S, LAST_S = -3, 14
LEFT, SECOND = 138, 46
WIDTH = LEFT + (LAST_S - FIRST_S) * SECOND + 24
AXIS_Y = 34
LANE_Y = (96, 168)
LANE_COLOURS = ("#b45309", "#1d4ed8")
BARS_Y, BAR_STEP, BAR_HEIGHT = 232, 48, 40

STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2937 }
  .small { font-size: 11px; fill: #6b7280 }
  .row { font-size: 12px }
  .lane { font-weight: 600 }
  .grid { stroke: #eceff3 }
  .bar { fill: #eef2ff; stroke: #c7d2fe }
"""


def draw() -> str:
    """Return the picture as SVG text."""
    definitions = load_definitions(CASE / "definitions.yaml")
    partitions = read_rows(definitions)
    rankings: dict[int, dict[str, dict[str, Any]]] = {}
    for result in brute_force_results(definitions.group, definitions.queries, partitions):
        rankings.setdefault(seconds(result["window_end"]), {})[result["query"]] = result
    height = BARS_Y + len(rankings) * BAR_STEP + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        f"<style>{STYLE}</style>",
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="10" fill="#ffffff" stroke="#e5e7eb"/>',
        *axis(height),
        *lanes(definitions, accepted(definitions.group, partitions)),
        *bars(rankings),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def read_rows(definitions: Definitions) -> Partitions:
    """Return the rows of the case by (stream index, partition)."""
    partitions: dict[tuple[int, int], list[Row]] = {}
    for line in (CASE / "input.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        place = definitions.group.stream_index(row["stream"]), 0
        partitions.setdefault(place, []).append(Row(row["object_id"], row["event_time"], (float(row["value"]),)))
    return partitions


def axis(height: int) -> Iterator[str]:
    """Yield the seconds and their grid."""
    yield f'<text x="16" y="{AXIS_Y}" class="small">event time, s</text>'
    for second in range(FIRST_S, LAST_S + 1):
        yield f'<line x1="{x(second)}" y1="{AXIS_Y + 8}" x2="{x(second)}" y2="{height - 12}" class="grid"/>'
        yield f'<text x="{x(second)}" y="{AXIS_Y}" text-anchor="middle" class="small">{number(second)}</text>'


def lanes(definitions: Definitions, seen: list[Seen]) -> Iterator[str]:
    """Yield both streams: a dot at each event time, hollow and with an arc to its release time if it is late."""
    for index, stream in enumerate(definitions.group.streams):
        y, colour = LANE_Y[index], LANE_COLOURS[index]
        yield f'<text x="16" y="{y - 3}" class="lane" style="fill: {colour}">{stream.name}</text>'
        yield f'<text x="16" y="{y + 13}" class="small">max_delay {seconds(stream.max_delay_us)} s</text>'
        yield f'<line x1="{x(FIRST_S)}" y1="{y}" x2="{x(LAST_S)}" y2="{y}" stroke="#cbd5e1"/>'
        for row in (row for row in seen if row.stream == index):
            at, release = x(seconds(row.event)), x(seconds(row.release))
            label = f"{row.object_id} {row.values[0]:g}"
            yield f'<text x="{at}" y="{y - 12}" text-anchor="middle" class="row">{label}</text>'
            if release > at:
                middle = (at + release) / 2
                yield (
                    f'<path d="M {at} {y + 5} Q {middle:g} {y + 26} {release} {y + 3}" fill="none" '
                    f'stroke="{colour}" stroke-dasharray="3 3"/>'
                )
                yield f'<line x1="{release}" y1="{y - 6}" x2="{release}" y2="{y + 6}" stroke="{colour}"/>'
                yield (
                    f'<text x="{at}" y="{y + 32}" text-anchor="middle" class="small">'
                    f"late: counts after {seconds(row.release)}</text>"
                )
            fill = "#ffffff" if release > at else colour
            yield f'<circle cx="{at}" cy="{y}" r="5" fill="{fill}" stroke="{colour}" stroke-width="2"/>'


def bars(rankings: dict[int, dict[str, dict[str, Any]]]) -> Iterator[str]:
    """Yield one bar for each window, with both rankings in it."""
    for place, (end, by_query) in enumerate(sorted(rankings.items())):
        y = BARS_Y + place * BAR_STEP
        start = seconds(by_query["hottest"]["window_start"])
        yield f'<text x="16" y="{y + 16}" class="lane">T = {end}</text>'
        yield f'<text x="16" y="{y + 32}" class="small">window [{number(start)}, {end})</text>'
        yield (f'<rect x="{x(start)}" y="{y}" width="{x(end) - x(start)}" height="{BAR_HEIGHT}" rx="5" class="bar"/>')
        yield f'<text x="{x(start) + 10}" y="{y + 17}">any: {words(by_query.get("hottest"))}</text>'
        complete = words(by_query.get("hottest-complete"))
        yield f'<text x="{x(start) + 10}" y="{y + 33}" class="small">all: {complete}</text>'


def words(result: dict[str, Any] | None) -> str:
    """Return a ranking in one line."""
    if result is None:
        return "not written"
    return ", ".join(f"{row['object_id']} {row['score']:.1f}" for row in result["rows"]) or "empty"


def x(second: int) -> int:
    """Return where a second stands."""
    return LEFT + (second - FIRST_S) * SECOND


def seconds(us: int) -> int:
    """Return whole seconds."""
    return us // 1_000_000


def number(value: int) -> str:
    """Return a number with a real minus sign."""
    return str(value).replace("-", "−")


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
