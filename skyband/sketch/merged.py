"""What the shards of a group have published, put together."""

from collections.abc import Sequence
from dataclasses import replace

from skyband.errors import ConflictError, DefinitionError, NotFoundError
from skyband.model.duration import format_duration
from skyband.model.group import Group
from skyband.model.published_statistics import PublishedStatistics
from skyband.model.statistics import GroupStatistics
from skyband.sketch.group_sketch import GroupSketch
from skyband.sketch.publication import SERVICE, Publication, read_observations

__all__ = ["merged_sketch", "merged_statistics"]


def merged_statistics(
    group: Group, generation: int, publications: Sequence[Publication], window_us: int | None = None
) -> PublishedStatistics:
    """Return the statistics of a generation of a group over all its shards, in the newest window.

    `publications` are of one source. `window_us` (default: the longest) is rounded up to whole panes of the sketches.
    Raises NotFoundError if nothing is published, DefinitionError for a window that is none or longer than the retention
    (of a job: than its range), ConflictError if the shards' sketches were made with different settings, LogError if one
    is damaged. Cost: the size of the sketches.
    """
    if not publications:
        raise NotFoundError(
            f"nothing is known yet of the streams of group {group.name!r} in generation {generation}; the sketch "
            "service publishes every 5 s once rows come: wait a moment, and see that it runs"
        )
    sketch = merged_sketch(publications)
    shape = sketch.shape
    _check_window(group, window_us, publications[0].source, shape.window_us)
    length_us = shape.window_us if window_us is None else -(-window_us // shape.pane_us) * shape.pane_us
    to_us = max(publication.to_us for publication in publications)
    shards = {publication.shard for publication in publications}
    sources = sorted({publication.source for publication in publications})
    return PublishedStatistics(
        group=group.name,
        generation=generation,
        streams=tuple(stream.name for stream in group.streams),
        attributes=tuple(tuple(one.name for one in stream.attributes) for stream in group.streams),
        observations=_observations(publications, shape.streams, to_us, shape.pane_us, length_us),
        from_us=min(to_us, *(publication.from_us for publication in publications)),
        published_us=min(publication.published_us for publication in publications),
        source=", ".join(sources),
        silent_shards=tuple(number for number in range(group.shards) if number not in shards),
        statistics=_own_values(sketch.statistics(to_us, length_us), group),
    )


def merged_sketch(publications: Sequence[Publication]) -> GroupSketch:
    """Return the sketch of all rows of some shards of a group, at least one. Raises as `merged_statistics` does."""
    sketch = GroupSketch.from_bytes(publications[0].sketch)
    for publication in publications[1:]:
        _merge(sketch, publication)
    return sketch


def _check_window(group: Group, window_us: int | None, source: str, longest_us: int) -> None:
    what, most_us = ("the group's retention", group.retention_us)
    if source != SERVICE:
        what, most_us = f"what {source!r} is of", longest_us
    if window_us is not None and not 0 < window_us <= most_us:
        raise DefinitionError(f"window must be above 0 and at most {what}, {format_duration(most_us)}", field="window")


def _merge(sketch: GroupSketch, publication: Publication) -> None:
    try:
        sketch.merge(GroupSketch.from_bytes(publication.sketch))
    except DefinitionError as error:
        group = publication.group
        raise ConflictError(
            f"the shards of group {group!r} were sketched with different settings; give all processes of the sketch "
            f"service the same SKYBAND_SKETCH_BITMAPS and SKYBAND_SKETCH_SAMPLE_BYTES, and begin anew with `skyband "
            f"groups regenerate {group}`"
        ) from error


def _observations(
    publications: Sequence[Publication], streams: int, to_us: int, pane_us: int, length_us: int
) -> tuple[int, ...]:
    """Return how many rows each stream has in the window; a shard that is behind has none at its end."""
    total = [0] * streams
    for publication in publications:
        panes = (length_us - (to_us - publication.to_us)) // pane_us
        if panes > 0:
            counts = read_observations(publication, streams)[-panes:].sum(axis=0)
            total = [one + int(count) for one, count in zip(total, counts, strict=True)]
    return tuple(total)


def _own_values(found: GroupStatistics, group: Group) -> GroupStatistics:
    """Return the statistics without the values that a stream does not have, but a wider one does."""
    streams = tuple(
        replace(told, value_quantiles=told.value_quantiles[: len(stream.attributes)])
        for told, stream in zip(found.streams, group.streams, strict=True)
    )
    return replace(found, streams=streams)
