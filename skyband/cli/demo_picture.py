"""One frame of the demo as a picture, for documents: a frame of a real run, drawn with no font but the reader's own."""

import io
from pathlib import Path

from rich.console import Console, Group
from rich.text import Text

from skyband.cli.demo_screen import Gauges, frame_view, local_time, title
from skyband.errors import DefinitionError
from skyband.local.demo import SLIDE_US, Demo, Pace, evaluation_count, frame

__all__ = ["record"]

_WIDTH = 118
# About as many evaluations as lie between two frames of a run on a terminal.
_STEP = 6

# As rich's own, without its web fonts.
_FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
    <style>
    .{unique_id}-matrix {{
        font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
        font-size: {char_height}px;
        line-height: {line_height}px;
        font-variant-east-asian: full-width;
    }}
    .{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
    {styles}
    </style>
    <defs>
    <clipPath id="{unique_id}-clip-terminal">
      <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
    </clipPath>
    {lines}
    </defs>
    {chrome}
    <g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
    {backgrounds}
    <g class="{unique_id}-matrix">
    {matrix}
    </g>
    </g>
</svg>
"""


def record(shown: Demo, path: Path, at: str, seconds: float) -> None:
    """Run `shown` to its end and write the frame of New York's time `at`, as a run of `seconds` shows it."""
    count = evaluation_count(shown.rows)
    pace = Pace(count, seconds)
    ranks: list[dict[str, int]] = []
    picture = ""
    for number, truth, result in shown:
        before = ranks[-_STEP] if len(ranks) >= _STEP else {}
        now = frame(number, truth, result, before)
        ranks = [*ranks[1 - _STEP :], now.ranks]
        if f"{local_time(truth.window_end):%Y-%m-%d %H:%M}" == at:
            speed = pace.evaluations_per_s(number) * SLIDE_US / 1e6
            remaining_s = pace.seconds - pace.shown_after_s(number)
            gauges = Gauges(number, count, shown.late_rows, shown.rows_per_s, speed, remaining_s)
            picture = _drawn(Group(title(_WIDTH), frame_view(now, gauges, _WIDTH), Text()))
    if not picture and shown.difference is None:
        raise DefinitionError("no evaluation ends then; write for example 2013-07-10 11:40", place=f"--at {at}")
    path.write_text(picture, encoding="utf-8")


def _drawn(view: Group) -> str:
    console = Console(
        record=True,
        width=_WIDTH,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
        highlight=False,
    )
    console.print(view)
    return console.export_svg(title="skyband demo", code_format=_FORMAT, unique_id="skyband")
