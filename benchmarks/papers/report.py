"""A report of experiments: tables in Markdown, charts beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import harness
from benchmarks.papers.svg import Chart

__all__ = ["Section", "write"]


@dataclass(frozen=True)
class Section:
    """One experiment: what is varied, a table, one sentence or more on how it compares, charts by name."""

    title: str
    given: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    verdict: str
    charts: Mapping[str, Chart] = field(default_factory=dict)

    def markdown(self, stem: str) -> str:
        """Return the section; its charts are found at ``<stem>-<name>.svg``."""
        lines = [f"## {self.title}", "", self.given, ""]
        if self.rows:
            lines += [_row(self.head), _row(["---", *["---:"] * (len(self.head) - 1)]), *map(_row, self.rows), ""]
        lines += [self.verdict, ""]
        for name, chart in self.charts.items():
            lines += [f"![{chart.title}]({stem}-{name}.svg)", ""]
        return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def write(folder: Path, label: str, title: str, introduction: str, sections: Sequence[Section], seconds: float) -> Path:
    """Write the report and its charts to a folder; return the report's file."""
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    stem = f"{now:%Y-%m-%d}-{label}"
    machine = ", ".join(f"{key} {value}" for key, value in harness.machine().items())
    measured = f"Measured {now:%Y-%m-%d %H:%M} UTC in {seconds:,.0f} s on one core: {machine}."
    head = f"# {title}\n\n{measured}\n\n{introduction}\n"
    path = folder / f"{stem}.md"
    path.write_text("\n".join([head, *(section.markdown(stem) for section in sections)]))
    for section in sections:
        for name, chart in section.charts.items():
            (folder / f"{stem}-{name}.svg").write_text(chart.text())
    return path
