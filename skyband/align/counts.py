"""How many records of each stream were used, and why the others were not."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skyband.model.source_rows import Reason

__all__ = ["Counts", "StreamCounts"]


@dataclass(frozen=True, slots=True)
class StreamCounts:
    """Counts of one stream since its aligner began: `late` rows are among the accepted; `rejected` names no zeros."""

    stream: str
    accepted: int
    late: int
    rejected: Mapping[Reason, int]

    @property
    def records(self) -> int:
        """Number of records seen, used or not."""
        return self.accepted + sum(self.rejected.values())


class Counts:
    """Counts per stream; every record is counted once, under the reason it was rejected for or as accepted."""

    def __init__(self, streams: tuple[str, ...]) -> None:
        self._streams = streams
        self._by_reason = np.zeros((len(streams), len(Reason)), np.int64)
        self._late = [0] * len(streams)

    def add(self, stream: int, reason: npt.NDArray[np.uint8], late: int) -> None:
        """Count the records of a chunk of the stream of that index."""
        self._by_reason[stream] += np.bincount(reason, minlength=len(Reason))
        self._late[stream] += late

    def snapshot(self) -> tuple[StreamCounts, ...]:
        """Return the counts now, in stream order."""
        return tuple(
            StreamCounts(
                stream=name,
                accepted=int(row[Reason.ACCEPTED]),
                late=late,
                rejected={reason: int(row[reason]) for reason in Reason if reason and row[reason]},
            )
            for name, row, late in zip(self._streams, self._by_reason, self._late, strict=True)
        )
