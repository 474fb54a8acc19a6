"""What a shard's sketch publishes of itself: the sketch, what it covers, and where a restart reads on."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skyband.errors import LogError
from skyband.log.partition_of import partition_of
from skyband.log.read_range import read_range
from skyband.log.record_log import Position, RecordLog

__all__ = ["SERVICE", "Publication", "newest_publications", "publication_key", "read_observations"]

# Who makes the publications of running groups.
SERVICE = "service"


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """The sketch of one shard as of all batches below `aligned_offset` of its aligned log.

    `next_offsets` says per source partition (stream index, partition) what is covered; stream -1 is the catalog. The
    rows have event times from `from_us` (2^62: there was none) to `newest_us`; a window that ends at `to_us` holds them
    all, and what came before `from_us` is forgotten or was never seen. `source`: "service", or the job that made it.
    `published_us`: on the writer's clock. `observations`: int64[panes, streams], little endian, how many rows came in
    each pane of the window that ends at `to_us`. `sketch`: see `GroupSketch.to_bytes`. Times in microseconds.
    """

    group: str
    generation: int
    shard: int
    aligned_offset: int
    next_offsets: tuple[tuple[int, int, int], ...]
    newest_us: int
    from_us: int
    to_us: int
    source: str
    published_us: int
    observations: bytes
    sketch: bytes

    @property
    def key(self) -> str:
        """Key of its record: the newest of each shard and source counts."""
        return publication_key(self.group, self.generation, self.shard, self.source)


def publication_key(group: str, generation: int, shard: int, source: str = SERVICE) -> str:
    """Return the key of a shard's publications; those of jobs stand apart from the service's."""
    key = f"{group}/{generation}/{shard}"
    return key if source == SERVICE else f"{key}/{source}"


def read_observations(publication: Publication, streams: int) -> npt.NDArray[np.int64]:
    """Return int64[panes, streams], a copy: rows by pane and stream. Raises LogError if they do not fit the streams."""
    data = publication.observations
    if not data or len(data) % (8 * streams):
        raise LogError(
            f"statistics {publication.key!r} are damaged ({len(data)} bytes are no counts of {streams} streams); send "
            "their key without a value, they are made anew from the log"
        )
    return np.frombuffer(data, "<i8").astype(np.int64).reshape(-1, streams)


def newest_publications(
    log: RecordLog, topic: str, group: str, generation: int, shards: Iterable[int], source: str = SERVICE
) -> dict[int, Publication]:
    """Return the newest publication of each of these shards that has one of `source`.

    Raises LogError if they cannot be read. Cost: reads the partitions in which they lie.
    """
    count = log.partitions(topic)
    keys = {publication_key(group, generation, shard, source).encode(): shard for shard in shards}
    positions = [Position(topic, number) for number in sorted({partition_of(k.decode(), count) for k in keys})]
    found: dict[int, Publication] = {}
    consumer = log.consumer()
    try:
        begins, ends = consumer.begin_offsets(positions), consumer.end_offsets(positions)
        for at in positions:
            for record in read_range(consumer, at, begins[at], ends[at]):
                if record.key not in keys:
                    continue
                if isinstance(record.value, Publication):
                    found[keys[record.key]] = record.value
                elif record.value is None:
                    found.pop(keys[record.key], None)
    finally:
        consumer.close()
    return found
