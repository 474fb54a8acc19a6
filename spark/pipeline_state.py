"""What a part keeps: for good in Spark's state store, and live in the memory of the worker that ran it last."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["Live", "LiveParts", "MemoryTable", "Table", "chained", "read_facts", "write_facts"]

T = TypeVar("T")
_FACTS = "facts"


class Table(Protocol):
    """What one part has in the state store: bytes under names. Changes last if the micro-batch does."""

    def get(self, name: str) -> bytes | None:
        """Return the bytes of a name, None if there are none."""

    def put(self, name: str, data: bytes) -> None:
        """Keep bytes under a name."""

    def remove(self, name: str) -> None:
        """Forget a name."""

    def names(self) -> list[str]:
        """Return all names."""


class MemoryTable(dict[str, bytes]):
    """A table that nothing survives; for tests."""

    def put(self, name: str, data: bytes) -> None:
        """See `Table.put`."""
        self[name] = data

    def remove(self, name: str) -> None:
        """See `Table.remove`."""
        self.pop(name, None)

    def names(self) -> list[str]:
        """See `Table.names`."""
        return list(self)


@dataclass(frozen=True, slots=True)
class Live(Generic[T]):
    """A part in memory, and where it stands: how much it has taken, and the digest of all that."""

    it: T
    version: int
    digest: str


class LiveParts(Generic[T]):
    """The parts of one kind that a worker has run.

    Spark gives a part to any worker: one that is found here may be behind what the state store says, or ahead of it, if
    a micro-batch was begun and not finished. Parts of earlier runs are forgotten. Initially empty.
    """

    def __init__(self) -> None:
        self._run = ""
        self._parts: dict[str, Live[T]] = {}

    def take(self, run: str, key: str) -> Live[T] | None:
        """Remove and return a part: should what is done with it fail, it is not found again."""
        if run != self._run:
            self._run, self._parts = run, {}
        return self._parts.pop(key, None)

    def keep(self, key: str, part: Live[T]) -> None:
        """Keep a part of the run that was named last."""
        self._parts[key] = part


def chained(digest: str, data: bytes) -> str:
    """Return the digest of what `digest` is of, and `data` behind it."""
    return hashlib.blake2b(data, digest_size=16, key=digest.encode()).hexdigest()


def read_facts(table: Table) -> Mapping[str, Any] | None:
    """Return the numbers and texts of a part, None if it is new."""
    data = table.get(_FACTS)
    return None if data is None else json.loads(data)


def write_facts(table: Table, facts: Mapping[str, Any]) -> None:
    """Keep the numbers and texts of a part."""
    table.put(_FACTS, json.dumps(facts, separators=(",", ":")).encode())
