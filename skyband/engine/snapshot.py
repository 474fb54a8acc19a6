"""All that a shard holds before the batch at one offset of its aligned log, so that it goes on there at once.

A snapshot is a checkpoint whose windows are full: standing and done lie at the same offset, and the arrays hold what
a replay would bring back. They are the window stores, the rows that wait for time, and what rankings that forget
remember; all other rankings are made again from the stores. A shard that goes on from it tells what the one would
have told that ran throughout: same windows, same rows in the same order, to the last bit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skyband.engine.checkpoint import Checkpoint
from skyband.engine.snapshot_bytes import read_snapshot, write_snapshot_bytes
from skyband.errors import LogError
from skyband.model.group import Group
from skyband.model.saved_arrays import SavedArrays

__all__ = ["Snapshot", "shape_of"]


def shape_of(group: Group) -> dict[str, Any]:
    """Return what two groups must have in common for one to hold the state of the other, as plain values."""
    return {
        "shards": group.shards,
        "pane_us": group.pane_us,
        "retention_us": group.retention_us,
        "retention_rows": group.retention_rows,
        "streams": [
            {
                "name": stream.name,
                "attributes": [attribute.name for attribute in stream.attributes],
                "aggregate": stream.aggregate.value,
                "identity": stream.identity.value,
                "repeat_after_us": stream.repeat_after_us,
            }
            for stream in group.streams
        ],
    }


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """What a shard of a group of this `shape` holds before the batch at `checkpoint.aligned_offset`.

    `arrays` are copies, which the shard does not change any more.
    """

    checkpoint: Checkpoint
    shape: Mapping[str, Any]
    arrays: SavedArrays

    def to_bytes(self) -> bytes:
        """Return it as bytes, as `snapshot_bytes` lays them out. Cost: two copies and a digest."""
        return write_snapshot_bytes({"checkpoint": self.checkpoint.document(), "shape": self.shape}, self.arrays)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Snapshot":
        """Return what `to_bytes` wrote, over the memory of `data`. Cost: a digest.

        Raises LogError for another version, or what is damaged.
        """
        head, arrays = read_snapshot(data)
        if not {"checkpoint", "shape"} <= head.keys():
            raise LogError("a snapshot does not say what it is of; delete it, and write it anew")
        return cls(Checkpoint.of(head["checkpoint"]), head["shape"], arrays)

    def check_fits(self, group: Group) -> None:
        """Raise LogError, naming what differs, if the group has another shape."""
        for name, own in shape_of(group).items():
            theirs = self.shape.get(name)
            if theirs != own:
                checkpoint = self.checkpoint
                raise LogError(
                    f"the snapshot of shard {checkpoint.shard} of group {checkpoint.group!r} at aligned offset "
                    f"{checkpoint.aligned_offset} was made with {name} {theirs}, the group has {own}; delete the "
                    "snapshot, or give the group back what it had"
                )
