"""What a benchmark asks of another system: the rows of its windows, and what they took.

A *form* is one way to put a workload's question to a peer, with what is right for it: a peer may answer a simpler
question. A *trial* is a stretch of records that lie in their topics. A *run* is one form on one trial.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from benchmarks.workloads import Records

__all__ = ["Form", "Peer", "PeerError", "Run", "Trial", "Windows"]

Windows = Mapping[int, Sequence[tuple[str, float]]]


class PeerError(RuntimeError):
    """A peer cannot be had or does not do its work; the message is a sentence for the user."""


@dataclass(frozen=True, slots=True)
class Form:
    """A name for the results, and what is right: (object, score) by window end in ms, best first."""

    name: str
    right: Callable[[Records], Windows]


@dataclass(frozen=True, slots=True)
class Trial:
    """Records in the topics ``<topics>-<stream>``, and the last window end in ms that their own time completes."""

    topics: str
    records: Records
    last_ms: int


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds until the last window came, CPU seconds, largest memory of one process in MB, and the windows."""

    seconds: float
    cpu_s: float
    peak_mb: float
    windows: Windows


class Peer(Protocol):
    """Another system that answers the workloads' questions from the same Kafka."""

    name: str

    def prepare(self) -> None:
        """Fetch what is missing. Raises PeerError if it cannot be had."""

    def forms(self, workload: str) -> Sequence[Form]:
        """Return the forms that a workload has here."""

    def run(self, bootstrap: str, workload: str, form: Form, trials: Sequence[Trial]) -> list[Run]:
        """Run a form on each trial, in order, on processes that were started and warmed up for it; all end here."""
