"""Whether a rebuilt log is that of the generation that a group would begin next."""

from skyband.errors import ConflictError, DefinitionError
from skyband.model.group import Group
from skyband.model.rebuild import Rebuild
from skyband.model.resources import GroupResource, GroupSpec, SourceStart

__all__ = ["rebuilt_sources"]


def rebuilt_sources(old: GroupResource, group: Group, rebuild: Rebuild) -> tuple[SourceStart, ...]:
    """Return the source partitions with which a rebuilt generation begins.

    Raises ConflictError for a rebuild that is not complete, of another generation, or of streams that have changed
    since; DefinitionError for one of another group.
    """
    name = old.group.name
    if rebuild.group.name != name:
        raise DefinitionError(f"the rebuild is of group {rebuild.group.name!r}, not of {name!r}", field="rebuild")
    if not rebuild.is_complete:
        raise ConflictError(f"the rebuild of group {name!r} is not complete; run it again with --resume")
    if rebuild.generation != old.generation + 1:
        raise ConflictError(
            f"the rebuild is of generation {rebuild.generation}, but the next one of group {name!r} is "
            f"{old.generation + 1}; rebuild it again"
        )
    if GroupSpec.of(group) != GroupSpec.of(rebuild.group):
        raise ConflictError(f"the rebuild is of group {name!r} with {rebuild.group.shards} shards, not as asked here")
    for stream, theirs in zip(group.streams, rebuild.group.streams, strict=True):
        if stream != theirs:
            raise ConflictError(
                f"stream {stream.name!r} is defined otherwise than in the rebuild; change it to what the rebuild has "
                f"with `skyband streams update {stream.name}`, or rebuild the group again"
            )
    return tuple(
        SourceStart(source.stream, source.partition, source.from_offset, source.topic_id)
        for source in rebuild.sources
        if not (source.joins or source.is_history)
    )
