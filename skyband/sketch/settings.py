"""How a sketch stage is set up."""

from dataclasses import dataclass

__all__ = ["SketchTopics", "SketchTuning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SketchTopics:
    """What a sketch stage reads and writes."""

    aligned: str
    statistics: str = "statistics"


@dataclass(frozen=True, slots=True, kw_only=True)
class SketchTuning:
    """How often a sketch stage publishes, and how exact its sketches are.

    `bitmaps`, a power of two, and `sample_bytes` count a stream; a shard that was published before keeps those that it
    has. All shards of a generation must have the same, or they cannot be merged.
    """

    publish_every_us: int = 5_000_000
    bitmaps: int = 64
    sample_bytes: int = 20_000
    max_records: int = 8
