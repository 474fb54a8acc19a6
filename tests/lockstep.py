"""Compares results evaluation after evaluation and shows the first difference with the input around it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.oracle import Partitions

NEARBY = 40


def assert_equal(
    expected: Sequence[Mapping[str, Any]], got: Sequence[Mapping[str, Any]], partitions: Partitions | None = None
) -> None:
    """Assert that two lists of results are the same to the last bit, in the same order.

    The order of an evaluation's keys and of a row's keys does not matter; that of a row's attributes does. On failure
    the message shows the first evaluation that differs; with `partitions`, also the input rows of the objects that do.
    """
    for index, (one, other) in enumerate(zip(expected, got, strict=False)):
        if _head(one) != _head(other):
            place = f"evaluation {index} is not the one expected"
            raise AssertionError(f"{place}\n  expected {_title(one)}\n  got      {_title(other)}")
        if _lines(one) != _lines(other):
            raise AssertionError(_difference(index, one, other, partitions or {}))
    if len(expected) != len(got):
        which, longer = ("missing", expected) if len(expected) > len(got) else ("not expected", got)
        first = longer[min(len(expected), len(got))]
        text = [f"{len(expected)} evaluations expected, {len(got)} got; first {which}: {_title(first)}"]
        raise AssertionError("\n".join(text + [f"    {line}" for line in _lines(first)]))


def _head(result: Mapping[str, Any]) -> tuple[Any, ...]:
    return result["query"], result["window_start"], result["window_end"]


def _title(result: Mapping[str, Any]) -> str:
    query, start, end = _head(result)
    return f"query {query!r}, window [{start}, {end}), {len(result['rows'])} rows"


def _lines(result: Mapping[str, Any]) -> list[str]:
    """Return the rows as text that is equal iff they are: floats in shortest form, so each bit counts."""
    return [_line(row) for row in result["rows"]]


def _line(row: Mapping[str, Any]) -> str:
    known = ("rank", "object_id", "score", "event_time", "attributes")
    parts = {name: row[name] for name in known if name in row}
    return json.dumps(parts | {name: row[name] for name in sorted(set(row) - set(known))}, ensure_ascii=False)


def _difference(index: int, one: Mapping[str, Any], other: Mapping[str, Any], partitions: Partitions) -> str:
    expected, got = _lines(one), _lines(other)
    text = [f"evaluation {index} differs: {_title(one)}; - expected, + got"]
    for i in range(max(len(expected), len(got))):
        pair = expected[i : i + 1], got[i : i + 1]
        if pair[0] == pair[1]:
            text.append(f"    {expected[i]}")
            continue
        text += [f"  - {line}" for line in pair[0]] + [f"  + {line}" for line in pair[1]]
    if partitions:
        wrong = set(expected) ^ set(got)
        objects = {row["object_id"] for row in (*one["rows"], *other["rows"]) if _line(row) in wrong}
        text += _nearby(objects, one, partitions)
    return "\n".join(text)


def _nearby(objects: set[str], result: Mapping[str, Any], partitions: Partitions) -> list[str]:
    """Return the input rows of these objects, those around the window's end first if there are too many."""
    found = [
        (row.event_time_us, stream, partition, offset, row)
        for (stream, partition), rows in partitions.items()
        for offset, row in enumerate(rows)
        if row.object_id in objects
    ]
    nearest = sorted(found, key=lambda item: abs(item[0] - result["window_end"]))[:NEARBY]
    text = [f"  input rows of {sorted(objects)} (event time, stream, partition, offset, values):"]
    text += [f"    {t} s{s} p{p} @{offset} {row.object_id!r} {row.values}" for t, s, p, offset, row in sorted(nearest)]
    return text + ([f"    and {len(found) - NEARBY} more"] if len(found) > NEARBY else [])
