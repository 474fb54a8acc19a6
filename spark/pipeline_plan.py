"""What every part of a pipeline is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from services.runtime.registry_settings import RegistrySettings
from skyband.model.catalog import CATALOG_STREAM, QueryChange
from skyband.model.group import Group

if TYPE_CHECKING:
    # It travels to processes that run no part, and need not wait for what these stand on.
    from skyband.align.source import SourceKey
    from skyband.fanout.activation import Mark

__all__ = ["PipelinePlan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePlan:
    """One generation of a group, as its pipeline runs it.

    `run` tells this start from all others. `starts`: the source partitions that the generation begins with, and their
    first offsets; others join where they first bring something. `queries` come before those of the catalog, as if they
    were its first changes. `carried`: what earlier merges of the group have decided, by uid. `snapshot_bytes`: a shard
    whose log is shorter needs no snapshot.
    """

    run: str
    group: Group
    generation: int
    starts: Mapping[SourceKey, int] = field(default_factory=dict)
    queries: tuple[QueryChange, ...] = ()
    carried: Mapping[str, Mark] = field(default_factory=dict)
    registry: RegistrySettings | None = None
    max_rows: int = 50_000
    max_pending_bytes: int = 1 << 30
    snapshot_bytes: int = 16 << 20

    @property
    def name(self) -> str:
        """Group and generation, as in names of topics."""
        return f"{self.group.name}.{self.generation}"

    @property
    def catalog_shift(self) -> int:
        """How far the offsets of the catalog are moved: its own changes come behind `queries`."""
        return len(self.queries)

    def start_of(self, key: SourceKey) -> int:
        """Return the offset from which on a source partition is covered."""
        return self.catalog_shift if key[0] == CATALOG_STREAM else self.starts.get(key, 0)
