"""Source partitions: where each one stands, and when it counts as idle."""

from dataclasses import dataclass

from skyband.model.catalog import CATALOG_STREAM
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US
from skyband.model.stream import IdleThen, Stream

__all__ = ["CATALOG_KEY", "LEAST_LEASE_US", "SourceKey", "SourcePartition", "SourceStart", "Standing"]

SourceKey = tuple[int, int]
"""A stream's index in its group, and a partition of that stream's topic."""

CATALOG_KEY: SourceKey = (CATALOG_STREAM, 0)

# A lease is renewed at half its length and every renewal is a section on each shard: no more than two a second.
LEAST_LEASE_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Standing:
    """What a section says of a source partition besides its offsets; see `Section`."""

    watermark_us: int = MIN_TIME_US
    newest_us: int = MIN_TIME_US
    idle_until_us: int = 0


@dataclass(frozen=True, slots=True)
class SourceStart:
    """Where reading of a source partition begins: the next offset, and the times that all rows before it have made.

    A partition read from its generation's start offset has the defaults; one that is taken over has the times of its
    last section, or its release times would not be those of an unbroken run.
    """

    offset: int = 0
    watermark_us: int = MIN_TIME_US
    newest_us: int = MIN_TIME_US


class SourcePartition:
    """One source partition in the hands of one aligner.

    `cursor` is the next offset. The *watermark* promises the release times to come and never goes back; MAX_TIME_US
    means finished. A partition is *idle* while its lease `idle_until_us` runs: it was at its end and had brought
    nothing usable for `idle_after`. `said` is the standing in the last section that was made of it.

    Begins with the standing of its `SourceStart`, said, and not idle.
    """

    __slots__ = (
        "_heard",
        "_quiet_since_us",
        "cursor",
        "idle_until_us",
        "key",
        "newest_us",
        "said",
        "stream",
        "watermark_us",
    )

    def __init__(self, key: SourceKey, stream: Stream | None, start: SourceStart) -> None:
        self.key = key
        self.stream = stream
        self.cursor = start.offset
        self.watermark_us = start.watermark_us
        self.newest_us = start.newest_us
        self.idle_until_us = 0
        self.said = self.standing()
        self._heard = True
        self._quiet_since_us = 0

    @property
    def name(self) -> str:
        """The stream's name, for messages."""
        return self.stream.name if self.stream else "catalog"

    @property
    def has_heard(self) -> bool:
        """Whether anything usable came since the last `tick`; before the first one, as if something had."""
        return self._heard

    @property
    def is_finished(self) -> bool:
        """Whether no more rows will come."""
        return self.watermark_us >= MAX_TIME_US

    @property
    def can_idle(self) -> bool:
        """Whether the partition may become idle at all."""
        return self.stream is not None and self.stream.idle_then is IdleThen.FLUSH and not self.is_finished

    def standing(self) -> Standing:
        """Return what a section made now would say."""
        return Standing(self.watermark_us, self.newest_us, self.idle_until_us)

    def hear(self, watermark_us: int, newest_us: int, usable: int) -> None:
        """Take over the times after a chunk of which `usable` rows had a usable time; one such row ends idleness."""
        self.watermark_us = watermark_us
        self.newest_us = newest_us
        if usable:
            self._heard = True
            self.idle_until_us = 0

    def tick(self, now_us: int, at_end: bool) -> None:
        """Grant or renew the idle lease if it is due; `at_end`: nothing is left to read."""
        if self._heard:
            self._heard = False
            self._quiet_since_us = now_us
        if self.stream is None or not self.can_idle or not at_end:
            return
        lease_us = max(LEAST_LEASE_US, self.stream.idle_after_us)
        is_quiet = now_us - self._quiet_since_us >= self.stream.idle_after_us
        if is_quiet and now_us >= self.idle_until_us - lease_us // 2:
            self.idle_until_us = now_us + lease_us

    def finish(self) -> None:
        """Promise that no more rows come."""
        self.watermark_us = MAX_TIME_US
        self.idle_until_us = 0
