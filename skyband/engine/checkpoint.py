"""What a shard must know besides the aligned log, to go on after a restart as if nothing had happened.

A restart restores the *standing*, reads the aligned log again from the offset it belongs to, telling nothing, and goes
on where what is *done* ends::

    aligned log     ----|=================|--------►
                        standing          done
                        rows are read again, and fill the windows; what they led to was told before

`ReplayHorizon` chooses a standing so early that every row that still counts lies behind it.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

from skyband.errors import LogError
from skyband.model.catalog import QueryChange
from skyband.model.duration import MIN_TIME_US
from skyband.model.query import QueryState
from skyband.model.query_form import dump_query, read_query

__all__ = ["Checkpoint", "Done", "QueryDone", "QueryStanding", "Standing"]

_VERSION = 1


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
class Checkpoint:
    """Where a restart of a shard goes on: the standing before the batch at `aligned_offset`, and what is done."""

    group: str
    generation: int
    shard: int
    aligned_offset: int
    standing: Standing
    done: Done

    @property
    def key(self) -> str:
        """Key of its record: the newest of each shard counts."""
        return f"{self.group}/{self.generation}/{self.shard}"

    def document(self) -> dict[str, Any]:
        """Return it as plain values, fit for JSON."""
        standing, done = self.standing, self.done
        return {
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
        if document.get("version") != _VERSION:
            raise LogError(
                f"a checkpoint has version {document.get('version')!r}, this engine reads {_VERSION}; start the "
                "release that wrote it, or delete the topic of the checkpoints to replay everything"
            )
        try:
            done = document["done"]
            return cls(
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
