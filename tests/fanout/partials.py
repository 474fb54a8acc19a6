"""Builds partial batches from plain rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from skyband.model.catalog import QueryChange
from skyband.model.partials import Evaluation, PartialBatch
from skyband.model.query import Order, Query, QueryState, Window


@dataclass(frozen=True)
class Row:
    object_id: str
    score: float
    attributes: dict[str, float] = field(default_factory=dict)
    event_time_us: int | None = None
    sequence: int = 0


def query_change(
    uid: str,
    *,
    revision: int = 1,
    k: int = 3,
    slide: int = 10,
    size: int = 30,
    state: QueryState = QueryState.ACTIVE,
    in_rows: bool = False,
    group: str = "g",
    name: str | None = None,
) -> QueryChange:
    query = Query(name=name or uid, k=k, score="a", window=Window(size, slide, in_rows), order=Order.HIGHEST)
    return QueryChange(uid=uid, revision=revision, group=group, query=query, state=state)


def batch(
    shard: int,
    evaluations: Sequence[tuple[QueryChange, int, Sequence[Row]]],
    *,
    names: Sequence[str] = ("a", "b"),
    descending: bool = True,
    generation: int = 1,
    group: str = "g",
) -> PartialBatch:
    """Return a batch of (query, window end, ranked rows), in which equal rows are stored once."""
    rows: dict[tuple[object, ...], tuple[int, Row]] = {}
    ranking: list[int] = []
    told = []
    for change, window_end, ranked in evaluations:
        start = len(ranking)
        for row in ranked:
            key = (row.object_id, row.score, tuple(row.attributes.items()), row.event_time_us, row.sequence)
            ranking.append(rows.setdefault(key, (len(rows), row))[0])
        told.append(
            Evaluation(
                change.uid,
                change.revision,
                change.query.k,
                window_end - change.query.window.size,
                window_end,
                start,
                len(ranking),
            )
        )
    stored = [row for _, row in rows.values()]
    ids = [row.object_id.encode() for row in stored]
    by_row = any(row.event_time_us is not None for row in stored)
    return PartialBatch(
        group=group,
        generation=generation,
        shard=shard,
        descending=descending,
        attribute_names=tuple(names),
        evaluations=tuple(told),
        ranking=np.array(ranking, np.int32),
        id_bytes=np.frombuffer(b"".join(ids), np.uint8),
        id_ends=np.cumsum([len(i) for i in ids], dtype=np.int64),
        score=np.array([row.score for row in stored], np.float64),
        event_time_us=np.array([row.event_time_us for row in stored] if by_row else [], np.int64),
        sequence=np.array([row.sequence for row in stored], np.int64),
        attributes=np.array([[row.attributes.get(n, 0.0) for n in names] for row in stored]).reshape(-1, len(names)),
        present=np.array([[n in row.attributes for n in names] for row in stored], np.bool_).reshape(-1, len(names)),
    )
