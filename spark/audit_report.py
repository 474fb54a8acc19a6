"""What an audit says: tables for people, one JSON document for scripts."""

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skyband.cli.figures import count, end_of
from spark.audit_catalog import Asked
from spark.audit_compare import TOLERANCE, Kind
from spark.audit_job import Audited

__all__ = ["as_document", "as_tables", "differs"]


def differs(audited: Audited) -> bool:
    """Return whether anything was not as it should be."""
    return any(_differences(audited, asked) for asked in audited.queries)


def as_document(audited: Audited) -> dict[str, Any]:
    """Return the audit as plain values; times in microseconds."""
    names = {asked.uid: asked.name for asked in audited.queries}
    return {
        "equal": not differs(audited),
        "tolerance": TOLERANCE,
        "queries": [_query(audited, asked) for asked in audited.queries],
        "differences": [
            {
                "query": names[its.uid],
                "uid": its.uid,
                "window_end": its.window_end,
                "kind": its.difference.kind.value,
                "object_id": its.difference.object_id,
                "expected": its.difference.expected,
                "found": its.difference.found,
            }
            for its in audited.tally.told
        ],
    }


def as_tables(audited: Audited) -> RenderableType:
    """Return the audit for a terminal or a text file."""
    parts: list[RenderableType] = [_queries(audited)]
    parts += [Text(line) for line in _left_out(audited)]
    if differs(audited):
        parts += ["", _differences_table(audited)]
    return Group(*parts)


def _query(audited: Audited, asked: Asked) -> dict[str, Any]:
    counts = audited.tally.counts
    due = counts[asked.uid, "due"]
    return {
        "query": asked.name,
        "uid": asked.uid,
        "approximate": asked.bound.query.algorithm.is_approximate,
        "windows": counts[asked.uid, "windows"],
        "optional_windows": counts[asked.uid, "optional"],
        "unknown_windows": counts[asked.uid, "unknown"],
        "rows": counts[asked.uid, "rows"],
        "recall": counts[asked.uid, "shown"] / due if due else None,
        "differences": _differences(audited, asked),
        "left_out": audited.spans[asked.uid].notes,
    }


def _differences(audited: Audited, asked: Asked) -> dict[str, int]:
    counts = audited.tally.counts
    return {kind.value: counts[asked.uid, kind] for kind in Kind if counts[asked.uid, kind]}


def _queries(audited: Audited) -> Table:
    table = Table("query", "windows", "rows", "differences", box=None, pad_edge=False, header_style="bold")
    for asked in audited.queries:
        its = _query(audited, asked)
        found = ", ".join(count(number, kind) for kind, number in its["differences"].items()) or "none"
        if audited.spans[asked.uid].is_empty:
            found = "not audited"
        elif its["approximate"]:
            share = "nothing was due" if its["recall"] is None else f"recall {its['recall']:.4f}"
            found = f"approximate: {share}"
        table.add_row(asked.name, f"{its['windows']:,}", f"{its['rows']:,}", found)
    return table


def _left_out(audited: Audited) -> Iterator[str]:
    """Yield what was not audited, and why, each once."""
    lines: dict[str, list[str]] = {}
    for asked in audited.queries:
        notes = [f"not audited: {note}" for note in audited.spans[asked.uid].notes]
        unknown = audited.tally.counts[asked.uid, "unknown"]
        if unknown:
            notes.append(f"not audited: {count(unknown, 'window')} of before the first change that the log still has")
        optional = audited.tally.counts[asked.uid, "optional"]
        if optional:
            notes.append(f"may be missing: {count(optional, 'window')} at which the query was just changing")
        for note in notes:
            lines.setdefault(note, []).append(asked.name)
    for note, names in lines.items():
        yield note if len(names) == len(audited.queries) else f"{', '.join(names)}: {note}"


def _differences_table(audited: Audited) -> Table:
    told, total = audited.tally.told, sum(audited.tally.counts[key] for key in audited.tally.counts if key[1] in _KINDS)
    title = f"{count(total, 'difference')}; equal are scores that differ by less than {TOLERANCE:g} of themselves, and "
    title += "rows of scores so equal may stand in either order"
    if len(told) < total:
        title += f"; the first {len(told):,}"
    table = Table("query", "window end", "what", "object", "expected", "found", title=title, box=None, pad_edge=False)
    table.title_justify = "left"
    queries = {asked.uid: asked for asked in audited.queries}
    for its in told:
        query, one = queries[its.uid].bound.query, its.difference
        end = end_of(its.window_end, query.window.in_rows)
        table.add_row(
            query.name, end, one.kind.value, *(Text(x or "") for x in (one.object_id, one.expected, one.found))
        )
    return table


_KINDS = frozenset(kind.value for kind in Kind)
