"""What is sketched: a generation of a group in its newest window, or in a range of event times.

Words: a *range* [from, to) takes the place of the window. Its *panes* are the shortest multiples of the group's pane of
which it touches at most 60; the window is the range rounded outwards to them, but rows outside the range are left out::

    range             from            to
    panes of 10 s   │  ×──┼─────┼─────×  │       window: 4 panes, from a little before to a little behind
    rows         ○  │ ○●  │●   ●│  ●  ●○ │ ○     ● are sketched
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from services.runtime.payloads import pick
from skyband.coverage.aligned_batch import AlignedBatch
from skyband.errors import DefinitionError
from skyband.model.duration import FIRST_EVENT_US, LAST_EVENT_US
from skyband.model.group import Group
from skyband.model.resources import GroupResource
from skyband.sketch.settings import SketchTuning
from skyband.sketch.shard import SketchShard

__all__ = ["Range", "StatisticsPlan", "read_tuning", "source_name", "time_of"]

# As many as a window of the sketch service has.
_PANES = 60
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,62}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Range:
    """Event times in [from_us, to_us), microseconds."""

    from_us: int
    to_us: int

    def __post_init__(self) -> None:
        if self.from_us >= self.to_us:
            raise DefinitionError(f"{self} is no range; --from must lie before --to")

    def __str__(self) -> str:
        return f"{_utc(self.from_us)}..{_utc(self.to_us)}"

    def of(self, group: Group) -> Group:
        """Return the group with the window of this range as its retention, in panes of that."""
        pane_us = group.pane_us * -(-(self.to_us - self.from_us) // (_PANES * group.pane_us))
        if self._touched(pane_us) > _PANES:
            pane_us = group.pane_us * -(-(self.to_us - self.from_us) // ((_PANES - 1) * group.pane_us))
        return replace(group, pane_us=pane_us, retention_us=pane_us * self._touched(pane_us))

    def within(self, batch: AlignedBatch) -> AlignedBatch:
        """Return a batch as if nothing had come outside the range: its rows are left out, and time stops at its end."""
        sections = [replace(its, newest_us=min(its.newest_us, self.to_us - 1)) for its in batch.sections]
        inside = (batch.event_time_us >= self.from_us) & (batch.event_time_us < self.to_us)
        if inside.all():
            return replace(batch, sections=tuple(sections))
        ends = np.cumsum([0, *(its.rows for its in sections)])
        counts = [int(np.count_nonzero(inside[low:high])) for low, high in pairwise(ends)]
        places = np.flatnonzero(inside)
        id_bytes, id_ends = pick(batch.id_bytes, batch.id_ends, places)
        return replace(
            batch,
            sections=tuple(replace(its, rows=count) for its, count in zip(sections, counts, strict=True)),
            offset=batch.offset[places],
            event_time_us=batch.event_time_us[places],
            release_time_us=batch.release_time_us[places],
            id_bytes=id_bytes,
            id_ends=id_ends,
            id_hash=batch.id_hash[places],
            values=batch.values[places],
        )

    def _touched(self, pane_us: int) -> int:
        return -(-self.to_us // pane_us) - self.from_us // pane_us


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsPlan:
    """What tasks are told: sketch this generation of `group`, whose retention is the window.

    `starts`: where its source partitions (stream, partition) begin; `source`: as publications name it.
    """

    group: Group
    generation: int
    source: str
    starts: Mapping[tuple[int, int], int]
    range: Range | None = None
    tuning: SketchTuning = field(default_factory=SketchTuning)

    @classmethod
    def of(cls, resource: GroupResource, source: str, span: Range | None, tuning: SketchTuning) -> "StatisticsPlan":
        """Return the plan for a group as the catalog has it, over a range, or its newest window."""
        group = resource.group
        return cls(
            group=group if span is None else span.of(group),
            generation=resource.generation,
            source=source,
            starts={(group.stream_index(its.stream), its.partition): its.offset for its in resource.sources},
            range=span,
            tuning=tuning,
        )

    def shard(self, number: int, begin: int) -> SketchShard:
        """Return the empty sketch of a shard whose aligned log is read from offset `begin`, its first."""
        starts = self.starts if begin == 0 else None
        return SketchShard(self.group, self.generation, number, starts, self.tuning)

    def within(self, batch: AlignedBatch) -> AlignedBatch:
        """Return what of a batch is sketched."""
        return batch if self.range is None else self.range.within(batch)


class _SketchSettings(BaseSettings):
    """What the sketch service reads too, so that a job's sketches are as exact as its own."""

    model_config = SettingsConfigDict(env_prefix="SKYBAND_SKETCH_", frozen=True, extra="ignore")

    bitmaps: int = Field(64, ge=2, le=65_536)
    sample_bytes: int = Field(20_000, ge=1_000, le=10_000_000)

    @field_validator("bitmaps")
    @classmethod
    def _power_of_two(cls, value: int) -> int:
        if value & (value - 1):
            raise ValueError(f"{value} is no power of two")
        return value


def read_tuning() -> SketchTuning:
    """Return how exact sketches are to be, as SKYBAND_SKETCH_… says. Raises DefinitionError for what is wrong there."""
    try:
        settings = _SketchSettings()
    except ValidationError as error:
        raise DefinitionError(f"a setting SKYBAND_SKETCH_… is wrong: {error.errors()[0]['msg']}") from None
    return SketchTuning(bitmaps=settings.bitmaps, sample_bytes=settings.sample_bytes)


def source_name(name: str | None, default: str) -> str:
    """Return the source of publications: ``spark:july``. Raises DefinitionError for a name that is none."""
    if name is not None and not _NAME.fullmatch(name):
        raise DefinitionError("is no name: write up to 63 letters, digits and . _ : + -", place=f"--name {name}")
    return f"spark:{name or default}"


def time_of(text: str, option: str) -> int:
    """Return a time in microseconds: ISO 8601 (UTC without an offset), or the number itself.

    Raises DefinitionError for anything else.

    >>> time_of("2026-07-18T12:00:00Z", "--from")
    1784376000000000
    """
    try:
        if text.lstrip("-").isdigit():
            time_us = int(text)
        else:
            moment = datetime.fromisoformat(text)
            since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
            time_us = since // timedelta(microseconds=1)
    except ValueError:
        time_us = LAST_EVENT_US
    if not FIRST_EVENT_US < time_us < LAST_EVENT_US:
        raise DefinitionError(
            "is no time such as 2026-07-18T12:00:00Z, nor microseconds since 1970", place=f"{option} {text}"
        )
    return time_us


def _utc(time_us: int) -> str:
    try:
        moment = _EPOCH + timedelta(microseconds=time_us)
    except OverflowError:
        return str(time_us)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='auto')}Z"
