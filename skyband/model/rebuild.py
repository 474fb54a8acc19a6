"""What a rebuild has made: the aligned log of a generation that has not begun yet, and where live reading goes on.

As a document it is JSON, of one version, with times in microseconds; docs/rebuild.md lists its keys.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from skyband.errors import DefinitionError
from skyband.model.duration import MIN_TIME_US
from skyband.model.group import Group
from skyband.model.group_form import dump_group, read_group

__all__ = ["HISTORY_PARTITIONS", "Rebuild", "RebuiltShard", "RebuiltSource"]

# Rows of a topic that was deleted and made anew keep their offsets under partitions from here on.
HISTORY_PARTITIONS = 1_000_000

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltSource:
    """A source partition whose offsets [from, to) are in the rebuilt log, and its times at `to_offset`.

    `joins`: the generation does not begin with it; it joins where the log first speaks of it.
    """

    stream: str
    partition: int
    topic_id: str
    from_offset: int
    to_offset: int
    watermark_us: int = MIN_TIME_US
    newest_us: int = MIN_TIME_US
    joins: bool = False

    @property
    def is_history(self) -> bool:
        """Whether it is of a topic that is gone: nobody reads on."""
        return self.partition >= HISTORY_PARTITIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltShard:
    """What was written of one shard; `snapshot_at`: the aligned offset of its full snapshot, -1 for none."""

    shard: int
    rows: int
    batches: int
    snapshot_at: int = -1
    snapshot_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """A rebuilt generation of a group; without `is_complete` not all of it is written.

    `since_us`: event time before which rows were left out, None: none were. `catalog_to`: next offset of the catalog.
    """

    rebuild_id: str
    group: Group
    generation: int
    history: str
    made_us: int
    since_us: int | None = None
    is_complete: bool = False
    sources: tuple[RebuiltSource, ...] = ()
    catalog_to: int = 0
    shards: tuple[RebuiltShard, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return it as plain values, fit for JSON."""
        return {
            "version": _VERSION,
            "rebuild_id": self.rebuild_id,
            "is_complete": self.is_complete,
            "generation": self.generation,
            "history": self.history,
            "since_us": self.since_us,
            "made_us": self.made_us,
            "group": dump_group(self.group),
            "catalog_to": self.catalog_to,
            "sources": [asdict(source) for source in self.sources],
            "shards": [asdict(shard) for shard in self.shards],
        }

    @classmethod
    def of(cls, document: object) -> "Rebuild":
        """Return what `document` made. Raises DefinitionError, with field ``rebuild``, for anything else."""
        if not isinstance(document, Mapping):
            raise _no_rebuild("it is no JSON object")
        if document.get("version") != _VERSION:
            raise _no_rebuild(f"it has version {document.get('version')!r}, this release reads {_VERSION}")
        found = {field.name: document[field.name] for field in fields(cls) if field.name in document}
        try:
            found["group"] = read_group(found["group"])
            found["sources"] = tuple(RebuiltSource(**source) for source in found["sources"])
            found["shards"] = tuple(RebuiltShard(**shard) for shard in found["shards"])
            rebuild = cls(**found)
            rebuild._check()
        except DefinitionError as error:
            raise _no_rebuild(str(error)) from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _no_rebuild(f"it is damaged ({type(error).__name__}: {error})") from None
        return rebuild

    def _check(self) -> None:
        """Raise TypeError or ValueError unless numbers are numbers, and sources those of the group."""
        places = set()
        for source in self.sources:
            self.group.stream_index(source.stream)
            place = (source.stream, source.partition)
            if place in places or min(source.partition, source.from_offset, source.to_offset - source.from_offset) < 0:
                raise ValueError(f"source partition {place} is there twice, or its offsets cannot be")
            places.add(place)
        if min(self.generation, self.catalog_to) < 0 or sorted(s.shard for s in self.shards) != list(
            range(self.group.shards) if self.is_complete else ()
        ):
            raise ValueError("its shards are not those of its group")


def _no_rebuild(why: str) -> DefinitionError:
    return DefinitionError(
        f"this is no document of a rebuild: {why}; write one with python -m spark.rebuild", field="rebuild"
    )
