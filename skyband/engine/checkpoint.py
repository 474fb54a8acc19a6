"""What a shard must know besides the aligned log, to go on after a restart as if nothing had happened.

A restart restores the *standing*, reads the aligned log again from the offset it belongs to, telling nothing, and goes
on where what is *done* ends::

    aligned log     ----|=================|--------►
                        standing          done
                        rows are read again, and fill the windows; what they led to was told before

`ReplayHorizon` chooses a standing so early that every row that still counts lies behind it. A checkpoint that names a
*snapshot* needs no such standing: the rows come out of the snapshot, and nothing before its offset is read.
"""

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any

from skyband.errors import LogError
from skyband.model.catalog import QueryChange
from skyband.model.duration import MIN_TIME_US
from skyband.model.query import QueryState
from skyband.model.query_form import dump_query, read_query

__all__ = ["Checkpoint", "Done", "QueryDone", "QueryStanding", "SnapshotName", "Standing"]

_VERSION = 2


@dataclass(frozen=True, slots=True)
class QueryStanding:
    """A query that is evaluated, and up to where its window ends had passed."""

    change: QueryChange
    passed: int


@dataclass(frozen=True, slots=True)
class Standing:
    """A shard between two batches: coverage and time, window ends passed, rows numbered or waiting, queries."""

    sequencer: Mapping[str, Any]
    passed_us: int
    rows: int
    queries: tuple[QueryStanding, ...]


@dataclass(frozen=True, slots=True)
class QueryDone:
    """What was told of a query: window ends passed, whether the last had rows, how many there were, last with rows.

    `first`: before this window end nothing is told, since its window is not complete.
    """

    passed: int
    had_rows: bool
    evaluations: int
    last_end: int
    first: int = MIN_TIME_US


@dataclass(frozen=True, slots=True)
class Done:
    """What was told: all that the batches below `aligned_offset` led to, and where that left window ends and rows."""

    aligned_offset: int
    passed_us: int
    rows: int
    queries: Mapping[str, QueryDone]


@dataclass(frozen=True, slots=True)
class SnapshotName:
    """A full snapshot beside a checkpoint: who wrote it, and by what it is known to be whole; `sha256` is of its tree.

    It lies in `chunks` records, `bytes` together; see `snapshot_bytes` for the digest, `snapshot_records` for the keys.
    """

    writer: str
    chunks: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a restart of a shard goes on: the standing before the batch at `aligned_offset`, and what is done.

    `snapshot`: what fills the windows at the standing; None: the rows behind it do.
    """

    group: str
    generation: int
    shard: int
    aligned_offset: int
    standing: Standing
    done: Done
    snapshot: SnapshotName | None = None

    @property
    def key(self) -> str:
        """Key of its record, unless it names a snapshot, and what decides about the partition: one for each shard."""
        return f"{self.group}/{self.generation}/{self.shard}"

    def document(self) -> dict[str, Any]:
        """Return it as plain values, fit for JSON."""
        standing, done = self.standing, self.done
        snapshot = {} if self.snapshot is None else {"snapshot": asdict(self.snapshot)}
        return {
            **snapshot,
            "version": _VERSION,
            "group": self.group,
            "generation": self.generation,
            "shard": self.shard,
            "aligned_offset": self.aligned_offset,
            "sequencer": dict(standing.sequencer),
            "passed_us": standing.passed_us,
            "rows": standing.rows,
            "queries": [_dump(query) for query in standing.queries],
            "done": {
                "aligned_offset": done.aligned_offset,
                "passed_us": done.passed_us,
                "rows": done.rows,
                "queries": {uid: list(astuple(query)) for uid, query in done.queries.items()},
            },
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Checkpoint":
        """Return what `document` made. Raises LogError for another version, or what is damaged."""
        if document.get("version") not in range(1, _VERSION + 1):
            raise LogError(
                f"a checkpoint has version {document.get('version')!r}, this engine reads 1 to {_VERSION}; start the "
                "release that wrote it, or delete the topic of the checkpoints to replay everything"
            )
        try:
            done, snapshot = document["done"], document.get("snapshot")
            return cls(
                snapshot=None if snapshot is None else SnapshotName(**snapshot),
                group=document["group"],
                generation=document["generation"],
                shard=document["shard"],
                aligned_offset=document["aligned_offset"],
                standing=Standing(
                    sequencer=document["sequencer"],
                    passed_us=document["passed_us"],
                    rows=document["rows"],
                    queries=tuple(map(_read, document["queries"])),
                ),
                done=Done(
                    aligned_offset=done["aligned_offset"],
                    passed_us=done["passed_us"],
                    rows=done["rows"],
                    queries={uid: QueryDone(*fields) for uid, fields in done["queries"].items()},
                ),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise LogError(f"a checkpoint is damaged ({error}); delete the topic of the checkpoints") from error


def _dump(query: QueryStanding) -> dict[str, Any]:
    change = query.change
    return {
        "uid": change.uid,
        "revision": change.revision,
        "group": change.group,
        "query": dump_query(change.query),
        "passed": query.passed,
    }


def _read(document: Mapping[str, Any]) -> QueryStanding:
    change = QueryChange(
        uid=document["uid"],
        revision=document["revision"],
        group=document["group"],
        query=read_query(document["query"]),
        state=QueryState.ACTIVE,
    )
    return QueryStanding(change, document["passed"])
