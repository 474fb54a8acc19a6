"""What could still happen to a result, on screens."""

from collections.abc import Callable, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from skyband.cli.figures import score
from skyband.model.result import Candidate, ResultRow

__all__ = ["candidates_table", "could_rise", "reach"]

_TITLE = "could still come in"


def could_rise(rows: Sequence[ResultRow]) -> bool:
    """Return whether any of the rows could reach another score than it has."""
    return any(row.best_score is not None and row.best_score != row.score for row in rows)


def reach(row: ResultRow) -> str:
    """Return what a row could reach, in the words of a table: ``–`` if that is what it has."""
    if row.best_score is None:
        return "no bound"
    return "–" if row.best_score == row.score else score(row.best_score)


def candidates_table(candidates: Sequence[Candidate], until: Callable[[int], str], **options: Any) -> Table:
    """Return a table of objects that could still come in; `until` writes a window end."""
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), **options)
    table.add_column(_TITLE, min_width=12, overflow="fold")
    for name in ("now", "could reach"):
        table.add_column(name, justify="right", min_width=6)
    table.add_column("lacks", overflow="fold")
    table.add_column("until")
    for candidate in candidates:
        table.add_row(
            Text(candidate.object_id),
            "–" if candidate.score is None else score(candidate.score),
            "no bound" if candidate.best_score is None else score(candidate.best_score),
            Text(", ".join(candidate.lacks)) if candidate.lacks else "–",
            until(candidate.until),
        )
    return table
