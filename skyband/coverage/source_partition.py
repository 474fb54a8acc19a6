"""What a reader of an aligned log knows of one source partition."""

from dataclasses import dataclass
from typing import NamedTuple

from skyband.coverage.aligned_batch import Section
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US

__all__ = ["Place", "SourcePartition"]


class Place(NamedTuple):
    """A source partition: index of its stream in the group, and partition of its topic."""

    stream: int
    partition: int


@dataclass(slots=True, kw_only=True)
class SourcePartition:
    """Coverage and time of one source partition, as far as the aligned log tells.

    `next_offset`: everything below is covered. `watermark_us`: later rows have release times of at least this.
    `newest_us`: newest accepted event time. `idle_until_us`: lease, on the writers' clock, during which the partition
    does not hold time up; `lease_written_us`: when it was written. `holds_when_idle`: the stream takes no leases.

    Initially nothing is covered and no time known. Invariant: next offset, watermark and newest never go back.
    """

    place: Place
    stream_name: str
    max_delay_us: int
    holds_when_idle: bool
    next_offset: int
    watermark_us: int = MIN_TIME_US
    newest_us: int = MIN_TIME_US
    idle_until_us: int = 0
    lease_written_us: int = MIN_TIME_US

    @property
    def name(self) -> str:
        """The partition in words, as in ``temperature/3``."""
        return f"{self.stream_name}/{self.place.partition}"

    @property
    def is_finished(self) -> bool:
        """Whether no more rows will come."""
        return self.watermark_us >= MAX_TIME_US

    def cover(self, section: Section, written_us: int) -> None:
        """Take over what `section` says; one that ends below the next offset is old and changes nothing.

        A section that ends exactly at the next offset may move times forward. Of two leases for one offset that written
        later counts; of two written at one instant the longer, so that a repeat changes nothing.
        """
        if section.to_offset < self.next_offset:
            return
        lease = (written_us, section.idle_until_us)
        if section.to_offset > self.next_offset or lease > (self.lease_written_us, self.idle_until_us):
            self.lease_written_us, self.idle_until_us = lease
        self.next_offset = section.to_offset
        self.watermark_us = max(self.watermark_us, section.watermark_us)
        self.newest_us = max(self.newest_us, section.newest_us)

    def is_idle(self, clock_us: int) -> bool:
        """Return whether it has a lease that still runs at `clock_us`."""
        return not self.holds_when_idle and self.idle_until_us != 0 and self.idle_until_us > clock_us

    def counted_us(self, clock_us: int, group_newest_us: int) -> int:
        """Return the time up to which it lets the frontier go."""
        if self.is_idle(clock_us):
            return max(self.watermark_us, group_newest_us - self.max_delay_us)
        return self.watermark_us
