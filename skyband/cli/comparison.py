"""Every result of a replay against brute force over the same rows, one by one and to the last bit."""

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from skyband.cli.figures import end_of
from skyband.errors import SkybandError
from skyband.files.rows import RowSource
from skyband.local.brute_force import Partitions, Row, accepted, evaluations
from skyband.local.replay import as_document
from skyband.model.definitions import Definitions
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.model.query import Window
from skyband.model.result import Result
from skyband.model.source_rows import SourceRows

__all__ = ["Comparison", "partitions_of", "unequal"]

_Document = dict[str, Any]


class Comparison:
    """Passes results through, each after it was found equal to brute force; `equal` counts them.

    Raises SkybandError at the first that is not. Cost: all rows in memory; an evaluation looks at each row of its
    window.
    """

    def __init__(self, definitions: Definitions, source: RowSource, results: Iterable[Result]) -> None:
        self.equal = 0
        self._definitions = definitions
        self._source = source
        self._results = results
        self._windows = {query.name: query.window for query in definitions.queries}

    def __iter__(self) -> Iterator[Result]:
        for result, expected in zip_longest(self._results, self._truth()):
            found = None if result is None else as_document(result)
            difference = unequal(found, expected, self._windows)
            if difference:
                raise SkybandError(f"{difference}; {self.equal:,} evaluations before it were equal")
            self.equal += 1
            yield result

    def _truth(self) -> Iterator[_Document]:
        group = self._definitions.group
        seen = accepted(group, partitions_of(self._source))
        answers = [evaluations(group, query, seen) for query in self._definitions.queries]
        return heapq.merge(*answers, key=lambda document: _place(document, self._windows))


def partitions_of(source: RowSource) -> Partitions:
    """Return the rows of every source partition, without those that could not be read."""
    partitions: dict[tuple[int, int], list[Row]] = {}
    for chunk in source:
        partitions.setdefault((chunk.stream, chunk.partition), []).extend(_rows(chunk.rows))
    return partitions


def _rows(rows: SourceRows) -> Iterator[Row]:
    arena, start = rows.id_bytes.tobytes(), 0
    columns = zip(rows.event_time_us.tolist(), rows.id_ends.tolist(), rows.values.tolist(), rows.reason, strict=True)
    for time_us, stop, values, reason in columns:
        if not reason and MIN_TIME_US < time_us < MAX_TIME_US:
            yield Row(arena[start:stop].decode(), time_us, tuple(values))
        start = stop


def unequal(found: _Document | None, expected: _Document | None, windows: Mapping[str, Window]) -> str | None:
    """Return in words what differs between a result and brute force's (None: it has no more), or None."""
    if json.dumps(found) == json.dumps(expected):
        return None
    if found is None or expected is None or _key(found) != _key(expected):
        first = min((d for d in (found, expected) if d), key=lambda d: _place(d, windows))
        why = "is missing: brute force has it" if first is expected else "is one that brute force has not"
        return f"{_name(first, windows)} {why}"
    for own, other in zip_longest(found["rows"], expected["rows"]):
        if json.dumps(own) != json.dumps(other):
            rank = (own or other)["rank"]
            return f"{_name(found, windows)} differs at rank {rank}: {_words(own)}, by brute force {_words(other)}"
    return f"{_name(found, windows)} differs from brute force"


def _place(document: _Document, windows: Mapping[str, Window]) -> tuple[bool, int, str]:
    """Return where a result stands in the order of a replay."""
    name = document["query"]
    return windows[name].in_rows, document["window_end"], name


def _key(document: _Document) -> tuple[Any, ...]:
    return document["window_end"], document["window_start"], document["query"]


def _name(document: _Document, windows: Mapping[str, Window]) -> str:
    end = end_of(document["window_end"], windows[document["query"]].in_rows)
    return f"the evaluation of query {document['query']!r} at {end}"


def _words(row: Mapping[str, Any] | None) -> str:
    return "no row" if row is None else f"{row['object_id']} with {row['score']!r} {row['attributes']}"
