"""A small group, and an aligner of it."""

from collections.abc import Sequence

from skyband.align.aligner import Aligner
from skyband.align.source import CATALOG_KEY, SourceStart
from skyband.model.group import Group
from skyband.model.stream import Attribute, OutOfRange, Stream
from tests.align.reference import Row, source_rows

S = 1_000_000
KEY = (0, 0)

OBJECTS = Stream(
    name="points",
    is_object_stream=True,
    attributes=(
        Attribute(name="x", lo=-5.0, hi=5.0),
        Attribute(name="y", lo=-0.0, hi=7.0, out_of_range=OutOfRange.CLAMP),
    ),
    max_delay_us=3,
    max_ahead_us=4,
)


def stream(name: str = "temperature", **more: object) -> Stream:
    """Return an attribute stream with bounds [0, 100]."""
    return Stream(name=name, attributes=(Attribute(name=name, lo=0, hi=100),), **more)  # type: ignore[arg-type]


def group(*streams: Stream, **more: object) -> Group:
    """Return a group of `streams`."""
    return Group(name="factory", streams=streams or (stream(),), retention_us=600 * S, **more)  # type: ignore[arg-type]


def aligner(*streams: Stream, shards: int = 1, max_rows: int = 100, partitions: int = 1, **more: object) -> Aligner:
    """Return an aligner of the whole group, from offset 0 on, with a catalog."""
    its_group = group(*streams, **more)
    keys = [(index, partition) for index in range(len(its_group.streams)) for partition in range(partitions)]
    return Aligner(its_group, 1, shards, {key: SourceStart() for key in [CATALOG_KEY, *keys]}, max_rows=max_rows)


def add(to: Aligner, rows: Sequence[Row], key: tuple[int, int] = KEY, end: int | None = None) -> None:
    """Add rows as one chunk that begins at the cursor and ends behind the last row, or at `end`."""
    to.add(*key, to.cursor(key), rows[-1].offset + 1 if end is None else end, source_rows(rows))
