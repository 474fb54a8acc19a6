"""A full snapshot as records of the topic of the checkpoints: chunks first, then the manifest that says what is there.

::

    key                                                             value
    <group>/<generation>/<shard>                                    small checkpoint
    <group>/<generation>/<shard>/<aligned offset>/<writer>/<chunk>  a piece of the snapshot's bytes
    <group>/<generation>/<shard>/<aligned offset>/<writer>          manifest: a checkpoint that names the snapshot
    <group>/<generation>/<shard>/<aligned offset>/<writer>/done     the same, with what an engine has done since

All records of a shard lie in one partition, that of its small checkpoint. So a manifest stands behind its chunks, and
an engine that writes small checkpoints while somebody writes a snapshot does not put it out of sight.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from skyband.engine.checkpoint import Checkpoint, SnapshotName
from skyband.engine.snapshot import Snapshot
from skyband.engine.snapshot_bytes import digest_of
from skyband.errors import LogError
from skyband.log.partition_of import partition_of
from skyband.log.record_log import Producer

__all__ = ["CHUNK_BYTES", "REBUILT", "chunks", "done_key", "join", "snapshot_key", "write_snapshot"]

# Large enough that a gigabyte is a few hundred records, far below what a record may be.
CHUNK_BYTES = 4 << 20

# So begin the writers of snapshots of a generation that has not begun: nobody was told of its queries.
REBUILT = "rebuild-"


def chunks(data: bytes, size: int) -> Iterator[bytes]:
    """Yield `data` in pieces of `size` bytes, the last one shorter."""
    for at in range(0, len(data), size):
        yield data[at : at + size]


def join(manifest: Checkpoint, found: Mapping[int, bytes]) -> bytes:
    """Return the snapshot's bytes from its chunks, by number; whether they are whole `Snapshot.from_bytes` finds out.

    Raises LogError, saying which, for chunks that are missing or of another snapshot, and for a manifest of none.
    """
    name = manifest.snapshot
    if name is None:
        raise LogError(f"the checkpoint {manifest.key} names no snapshot; read the log from its offset instead")
    missing = [str(number) for number in range(name.chunks) if number not in found]
    if missing:
        few = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
        raise LogError(f"{len(missing)} of {name.chunks} chunks are missing ({few}); write it anew, or delete it")
    data = b"".join(found[number] for number in range(name.chunks))
    if len(data) != name.bytes or digest_of(data) != name.sha256:
        raise LogError(
            f"its chunks are not those of its manifest ({len(data)} bytes, not {name.bytes}, or another digest); write "
            "it anew, or delete it"
        )
    return data


def snapshot_key(checkpoint: Checkpoint) -> str:
    """Return the key of the manifest of the snapshot that a checkpoint names; its chunks' begin with it."""
    assert checkpoint.snapshot is not None
    return f"{checkpoint.key}/{checkpoint.aligned_offset}/{checkpoint.snapshot.writer}"


def done_key(checkpoint: Checkpoint) -> str:
    """Return the key under which an engine stores a checkpoint: its own, or that for what it did since a snapshot."""
    return checkpoint.key if checkpoint.snapshot is None else f"{snapshot_key(checkpoint)}/done"


def write_snapshot(
    producer: Producer, topic: str, partitions: int, snapshot: Snapshot, writer: str, chunk_bytes: int = CHUNK_BYTES
) -> Checkpoint:
    """Write a snapshot to a topic of so many partitions, the manifest once all chunks are stored; return the manifest.

    `writer` must be another for each attempt, and have no slash: a second one with other bytes under the same keys
    could be read half. Engines use it once they have told what lies before it; a shard of which no engine has stored
    anything begins there, so that its writer answers for that. Raises LogError if something is not stored; there is no
    manifest then.
    """
    if not writer or "/" in writer:
        raise LogError(f"writer {writer!r} cannot be part of a key; name it without a slash")
    data = snapshot.to_bytes()
    pieces = list(chunks(data, chunk_bytes))
    name = SnapshotName(writer, len(pieces), len(data), digest_of(data))
    manifest = replace(snapshot.checkpoint, snapshot=name)
    key, partition = snapshot_key(manifest), partition_of(manifest.key, partitions)
    for number, piece in enumerate(pieces):
        producer.send(topic, partition, _chunk(manifest, piece), key=f"{key}/{number}".encode())
    producer.flush()
    producer.send(topic, partition, manifest.document(), key=key.encode())
    producer.flush()
    return manifest


def _chunk(manifest: Checkpoint, piece: bytes) -> dict[str, Any]:
    return {
        "group": manifest.group,
        "generation": manifest.generation,
        "shard": manifest.shard,
        "aligned_offset": manifest.aligned_offset,
        "chunk": piece,
    }
