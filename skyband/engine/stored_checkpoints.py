"""What the topic of the checkpoints holds of the shards of one generation: where each may go on, what can be deleted.

Of all checkpoints of a shard, small ones and manifests of snapshots, that which stands *furthest* in the aligned log
counts: the least is read again from there. What engines say is done is *told*. A snapshot that stands further than that
is passed over: to go on from it would leave out what nobody has told. Only where no engine has said anything its
writer is believed, who answers for what lies before.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from skyband.engine.checkpoint import Checkpoint, Done
from skyband.engine.snapshot import Snapshot
from skyband.engine.snapshot_records import join, snapshot_key
from skyband.errors import LogError
from skyband.log.read_range import read_all, read_range
from skyband.log.record_log import Position, Producer, Record, RecordLog

__all__ = ["StoredCheckpoints", "read_checkpoints", "read_snapshot_of", "remove_superseded"]


class Place(NamedTuple):
    """Where a record of a snapshot lies in the topic, and where in the aligned log the snapshot stands."""

    partition: int
    offset: int
    aligned_offset: int


@dataclass(slots=True)
class StoredCheckpoints:
    """What is stored of one shard: checkpoints by key, and the places of all records of snapshots by key."""

    checkpoints: dict[str, Checkpoint] = field(default_factory=dict)
    of_snapshots: dict[str, Place] = field(default_factory=dict)

    def furthest(self) -> Checkpoint | None:
        """Return where to go on; of two at one offset the small one, which needs no more."""
        told = self.told()
        found = [
            each for each in self.checkpoints.values() if told is None or each.aligned_offset <= told.aligned_offset
        ]
        return max(found, key=lambda each: (each.aligned_offset, each.snapshot is None), default=None)

    def told(self) -> Done | None:
        """Return the furthest of what engines have done, None if none has said so."""
        done = [each.done for key, each in self.checkpoints.items() if _is_of_an_engine(key)]
        return max(done, key=lambda each: each.aligned_offset, default=None)

    def superseded_by(self, small: Checkpoint) -> list[tuple[str, int]]:
        """Return keys and partitions of the snapshots that a small checkpoint makes useless, manifests before chunks.

        What is behind it stays: somebody may be writing it.
        """
        found = [
            (key, at.partition) for key, at in self.of_snapshots.items() if at.aligned_offset <= small.aligned_offset
        ]
        return sorted(found, key=lambda each: (each[0] not in self.checkpoints, each[0]))

    def note(self, checkpoint: Checkpoint, key: str, partition: int) -> None:
        """Take note of what was done since a snapshot, stored under `key`."""
        self.checkpoints[key] = checkpoint
        self.of_snapshots[key] = Place(partition, -1, checkpoint.aligned_offset)

    def forget(self, key: str) -> None:
        """Take note that the record of a key is gone."""
        self.checkpoints.pop(key, None)
        self.of_snapshots.pop(key, None)


def read_checkpoints(
    log: RecordLog, topic: str, group: str, generation: int, shards: Collection[int]
) -> dict[int, StoredCheckpoints]:
    """Return what is stored of these shards, without the chunks themselves. Cost: a pass over the topic.

    Raises LogError for a checkpoint of another version, or a damaged one.
    """
    stored = {shard: StoredCheckpoints() for shard in shards}
    for shard, key, record in _records(log, topic, group, generation, shards):
        own, parts = stored[shard], key.split("/")
        if record.value is None:
            own.forget(key)
            continue
        if len(parts) > 3 and parts[3].isdecimal():
            own.of_snapshots[key] = Place(record.partition, record.offset, int(parts[3]))
        if isinstance(record.value, Mapping) and "chunk" not in record.value:
            own.checkpoints[key] = Checkpoint.of(record.value)
    return stored


def read_snapshot_of(log: RecordLog, topic: str, stored: StoredCheckpoints, manifest: Checkpoint) -> Snapshot:
    """Return the snapshot that a manifest names. Cost: its chunks and what lies between them, and a digest.

    Raises LogError, with what to do, if it is not there whole.
    """
    start = f"{snapshot_key(manifest)}/"
    try:
        snapshot = Snapshot.from_bytes(join(manifest, _chunks_of(log, topic, stored, start)))
        theirs = snapshot.checkpoint
        if (theirs.key, theirs.aligned_offset) != (manifest.key, manifest.aligned_offset):
            raise LogError(f"its bytes are of {theirs.key} at aligned offset {theirs.aligned_offset}; delete it")
    except LogError as error:
        raise LogError(
            f"shard {manifest.shard} of group {manifest.group!r} cannot go on from its snapshot: {error}. Its keys in "
            f"topic {topic!r} begin with {start[:-1]!r}: sent without a value, they are deleted, and the shard goes on "
            "from an older checkpoint, or reads its aligned log from the beginning"
        ) from error
    return snapshot


def remove_superseded(producer: Producer, topic: str, stored: StoredCheckpoints, small: Checkpoint) -> None:
    """Delete the snapshots that a small checkpoint makes useless; it must be stored before. `flush` comes after."""
    for key, partition in stored.superseded_by(small):
        producer.send(topic, partition, None, key=key.encode())
        stored.forget(key)


def _is_of_an_engine(key: str) -> bool:
    parts = key.split("/")
    return len(parts) == 3 or (len(parts) == 6 and parts[5] == "done")


def _records(
    log: RecordLog, topic: str, group: str, generation: int, shards: Collection[int]
) -> Iterator[tuple[int, str, Record]]:
    """Yield the records of these shards, with their shard and key."""
    prefix = f"{group}/{generation}/".encode()
    for record in read_all(log, topic):
        if record.key is None or not record.key.startswith(prefix):
            continue
        shard = record.key[len(prefix) :].partition(b"/")[0]
        if shard.isdigit() and int(shard) in shards:
            yield int(shard), record.key.decode(), record


def _chunks_of(log: RecordLog, topic: str, stored: StoredCheckpoints, start: str) -> dict[int, bytes]:
    """Return the chunks whose keys begin so, by number. Cost: the records from the first to the last of them."""
    found: dict[int, bytes] = {}
    numbers = {key.removeprefix(start): at for key, at in stored.of_snapshots.items()}
    wanted = {at.offset: int(number) for number, at in numbers.items() if number.isdecimal()}
    if not wanted:
        return found
    partition = next(at.partition for at in numbers.values() if at.offset in wanted)
    consumer = log.consumer()
    try:
        for record in read_range(consumer, Position(topic, partition), min(wanted), max(wanted) + 1):
            # What has been written anew or deleted since lies at another offset.
            if record.offset in wanted and isinstance(record.value, Mapping):
                found[wanted[record.offset]] = bytes(record.value.get("chunk", b""))
    finally:
        consumer.close()
    return found
