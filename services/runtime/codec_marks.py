"""What fanout remembers of a merge, as Avro records; see schemas/mark.avsc."""

from collections.abc import Mapping
from typing import Any

from services.runtime.codec_queries import read_change, write_change
from services.runtime.codec_value import AvroRecord, ValueCodec, plain
from skyband.fanout.activation import Activation, Mark, MergeCheckpoint, ShardProgress

__all__ = ["MARK", "read_offsets", "write_offsets"]

_ACTIVATION = plain(Activation)
_SHARD_PROGRESS = plain(ShardProgress)


def write_offsets(offsets: Mapping[int, int]) -> list[dict[str, Any]]:
    """Return offsets by partition as records NextOffset, ascending."""
    return [{"partition": partition, "offset": offset} for partition, offset in sorted(offsets.items())]


def read_offsets(records: list[dict[str, Any]]) -> dict[int, int]:
    """Return offsets by partition."""
    return {record["partition"]: record["offset"] for record in records}


def _write_mark(mark: Mark) -> AvroRecord:
    return {
        "change": write_change(mark.change),
        "window_end": mark.window_end,
        "had_rows": mark.had_rows,
        "states": [{"revision": revision, "active": active} for revision, active in mark.states],
        "activations": [[_ACTIVATION.write(entry) for entry in timeline] for timeline in mark.activations],
    }


def _read_mark(record: AvroRecord) -> Mark:
    return Mark(
        change=read_change(record["change"]),
        window_end=record["window_end"],
        had_rows=record["had_rows"],
        states=tuple((state["revision"], state["active"]) for state in record["states"]),
        activations=tuple(tuple(Activation(**entry) for entry in timeline) for timeline in record["activations"]),
    )


def _write_checkpoint(checkpoint: MergeCheckpoint) -> AvroRecord:
    return {
        "group": checkpoint.group,
        "generation": checkpoint.generation,
        "progress": [_SHARD_PROGRESS.write(progress) for progress in checkpoint.progress],
        "read_to": write_offsets(checkpoint.read_to),
        "needed": write_offsets(checkpoint.needed),
        "catalog_to": checkpoint.catalog_to,
    }


def _read_checkpoint(record: AvroRecord) -> MergeCheckpoint:
    return MergeCheckpoint(
        group=record["group"],
        generation=record["generation"],
        progress=tuple(ShardProgress(**progress) for progress in record["progress"]),
        read_to=read_offsets(record["read_to"]),
        needed=read_offsets(record["needed"]),
        catalog_to=record["catalog_to"],
    )


MARK = (
    ValueCodec("Mark", Mark, _write_mark, _read_mark),
    ValueCodec("MergeCheckpoint", MergeCheckpoint, _write_checkpoint, _read_checkpoint),
)
