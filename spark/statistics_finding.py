"""What a run has found: statistics of all shards together, chosen subsets, and how it was found."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from skyband.cli.figures import as_time, count
from skyband.cli.statistics import print_statistics, statistics_document
from skyband.model.published_statistics import PublishedStatistics
from skyband.model.statistics import Appearance
from skyband.sketch.merged import merged_sketch, merged_statistics
from skyband.sketch.publication import Publication
from spark.statistics_plan import Range, StatisticsPlan
from spark.statistics_subsets import Subset, subset_appearances

__all__ = ["Finding", "Run", "as_document", "find", "print_finding"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How statistics were made: from where, of how many rows and repeats, in how many seconds."""

    where: str
    rows: int
    repeats: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is known of a group in a range (None: in its newest window), and of `subsets` of its streams."""

    statistics: PublishedStatistics
    subsets: tuple[tuple[Subset, Appearance | None], ...]
    range: Range | None
    run: Run


def find(plan: StatisticsPlan, publications: Sequence[Publication], subsets: Iterable[Subset], run: Run) -> Finding:
    """Return what publications of one plan say together. Raises as `merged_statistics` does."""
    found = merged_statistics(plan.group, plan.generation, publications)
    asked = tuple(subsets)
    told = subset_appearances(merged_sketch(publications), asked, found.statistics.at_us) if asked else ()
    return Finding(statistics=found, subsets=told, range=plan.range, run=run)


def as_document(found: Finding) -> dict[str, Any]:
    """Return it as plain values, fit for JSON; times in microseconds of event time."""
    names = found.statistics.streams
    span = found.range
    return {
        **statistics_document(found.statistics),
        "range": None if span is None else {"from": span.from_us, "to": span.to_us},
        "subsets": [
            {
                "given": [names[place] for place in its.given],
                "stream": names[its.stream],
                "appearance": None
                if told is None
                else {"value": told.probability, "error": told.error, "objects": told.objects},
            }
            for its, told in found.subsets
        ],
        "read_from": found.run.where,
        "rows": found.run.rows,
        "repeats": found.run.repeats,
        "seconds": found.run.seconds,
    }


def print_finding(found: Finding) -> None:
    """Print tables to stdout."""
    print_statistics(found.statistics)
    console = Console(width=None, highlight=False)
    if found.range is not None:
        span = f"rows with event times from {as_time(found.range.from_us)} up to {as_time(found.range.to_us)}"
        console.print(Text(span, style="dim"), soft_wrap=True)
    if found.subsets:
        table = Table("given", "comes on too", "± error", "objects", box=None, header_style="dim", pad_edge=False)
        for its, told in found.subsets:
            table.add_row(its.label(found.statistics.streams), *_cells(told))
        console.print()
        console.print(table)
    run = found.run
    line = f"{count(run.rows, 'row')} of {run.where} in {run.seconds:.1f} s, {count(run.repeats, 'repeat')} left out"
    console.print(Text(line, style="dim"), soft_wrap=True)


def _cells(told: Appearance | None) -> tuple[str, str, str]:
    if told is None:
        return "?", "", "fewer than 30"
    return f"{told.probability:.3f}", f"{told.error:.3f}", f"{told.objects:,}"
