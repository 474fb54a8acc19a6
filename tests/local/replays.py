"""What the tests of replay share: questions that can be stored, input in several forms, results as lines and dicts."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from skyband.errors import NotServedError
from skyband.local.replay import as_document
from skyband.model.definitions import Definitions
from skyband.model.group import Group
from skyband.model.planner import plan
from skyband.model.query import Algorithm, Query
from skyband.model.result import Result
from skyband.model.stream import Aggregate
from tests.oracle import Row
from tests.workloads import input_files, seeded

Rows = dict[tuple[int, int], list[Row]]
File = list[dict[str, object]]


def workload(seed: int, size: int | None = None) -> tuple[Definitions, Rows]:
    """Return definitions as a file could hold them, and rows, of a seed."""
    group, queries, rows = seeded(seed, size)
    if group.is_row_identity:
        # Records that are objects of their own have nothing to aggregate: a file cannot ask for it.
        streams = (replace(stream, aggregate=Aggregate.LATEST) for stream in group.streams)
        group = replace(group, streams=tuple(streams))
    queries = tuple(replace(query, require=() if query.require_all else query.require) for query in queries)
    return Definitions(group, queries), rows


def answered_by(definitions: Definitions, algorithm: Algorithm) -> Definitions:
    """Return the definitions with those queries only that `algorithm` can answer."""
    return replace(definitions, queries=tuple(q for q in definitions.queries if _fits(definitions.group, q, algorithm)))


def promising(definitions: Definitions, rows: Rows, repeat_after_us: int) -> tuple[Definitions, Rows]:
    """Return definitions whose streams promise `repeat_after_us`, and the rows without those that break the promise."""
    group = definitions.group
    streams = tuple(replace(stream, repeat_after_us=repeat_after_us) for stream in group.streams)
    times: dict[tuple[int, str], list[int]] = {}
    kept: Rows = {place: [] for place in rows}
    for (stream, partition), part in rows.items():
        for row in part:
            seen = times.setdefault((stream, row.object_id), [])
            if all(abs(row.event_time_us - time) >= repeat_after_us for time in seen):
                seen.append(row.event_time_us)
                kept[stream, partition].append(row)
    return replace(definitions, group=replace(group, streams=streams)), kept


def in_one_partition(rows: Rows) -> Rows:
    """Return the rows with all partitions of a stream one after the other in its first."""
    joined: Rows = {}
    for (stream, _), part in sorted(rows.items()):
        joined.setdefault((stream, 0), []).extend(part)
    return joined


def mixed_files(group: Group, rows: Rows, seed: int) -> list[File]:
    """Return replay's input with the streams of a file mixed; each stream's own rows stay in order."""
    choose = Random(seed)
    return [list(_mixed(file, choose)) for file in input_files(group, rows)]


def _mixed(file: File, choose: Random) -> Iterator[dict[str, object]]:
    streams = [str(row["stream"]) for row in file]
    waiting = {name: iter([row for row in file if row["stream"] == name]) for name in sorted(set(streams))}
    choose.shuffle(streams)
    for name in streams:
        yield next(waiting[name])


def written(folder: Path, files: Sequence[Iterable[Mapping[str, object]]]) -> list[Path]:
    """Return the files written as JSON Lines."""
    paths = [folder / f"input-{number}.jsonl" for number in range(len(files))]
    for path, file in zip(paths, files, strict=True):
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in file), encoding="utf-8")
    return paths


def as_text(results: Iterable[Result]) -> str:
    """Return results as replay writes them."""
    return "".join(json.dumps(as_document(result), ensure_ascii=False, allow_nan=False) + "\n" for result in results)


def as_dicts(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Return results as the oracle gives them."""
    return [dict(as_document(result)) for result in results]


def _fits(group: Group, query: Query, algorithm: Algorithm) -> bool:
    try:
        plan(group, replace(query, algorithm=algorithm))
    except NotServedError:
        return False
    return True
