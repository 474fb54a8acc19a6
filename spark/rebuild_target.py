"""The topic and the document of a rebuild: nobody else's data is written over, none is mixed."""

import json
import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from services.runtime.kafka_log import KafkaLog
from services.runtime.topics import aligned_config
from skyband.align.topics import aligned_topic
from skyband.errors import ConflictError, LogError
from skyband.log.read_range import read_all
from skyband.log.record_log import Position
from skyband.model.rebuild import Rebuild

__all__ = ["ends_of", "prepare_topic", "read_document", "write_document"]

_CHECKPOINTS = "checkpoints"


def read_document(path: Path) -> Rebuild | None:
    """Return the rebuild that a file tells of, None if there is no such file. Raises DefinitionError, OSError."""
    try:
        return Rebuild.of(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ConflictError(f"{path} is no document of a rebuild ({error}); name another file") from None


def write_document(path: Path, rebuild: Rebuild) -> None:
    """Write the document of a rebuild; a reader sees the old file or the new one."""
    before = path.with_name(f"{path.name}.{os.getpid()}")
    before.write_text(json.dumps(rebuild.document(), indent=1) + "\n", encoding="utf-8")
    before.replace(path)


def prepare_topic(log: KafkaLog, rebuild: Rebuild, before: Rebuild | None, *, resume: bool, discard: bool) -> None:
    """Make the aligned topic of the generation to come.

    If it holds data, `discard` deletes them, and `resume` writes on what the document `before` tells of. Raises
    ConflictError for data without either, or of another rebuild.
    """
    topic = aligned_topic(rebuild.group.name, rebuild.generation)
    is_there = not log.is_missing(topic)
    has_data = is_there and any(ends_of(log, topic).values())
    if has_data and not (resume or discard):
        raise ConflictError(
            f"topic {topic!r} holds a rebuild already; go on with it by --resume, or begin anew by --discard"
        )
    # One that nothing was written to may have other partitions: of a rebuild that was given up before.
    is_other = is_there and not has_data and log.partitions(topic) != rebuild.group.shards
    if (is_there and discard) or is_other:
        log.delete_topic(topic)
        _forget_snapshots(log, rebuild)
    elif has_data:
        _check_same(rebuild, before)
    try:
        log.create_topic(topic, rebuild.group.shards, config=aligned_config(rebuild.group))
    except LogError as error:
        raise ConflictError(f"{error}; begin anew by --discard") from error


def ends_of(log: KafkaLog, topic: str) -> Mapping[int, int]:
    """Return where each partition of a topic ends."""
    with closing(log.consumer()) as consumer:
        found = consumer.end_offsets([Position(topic, partition) for partition in range(log.partitions(topic))])
    return {at.partition: end for at, end in found.items()}


def _check_same(rebuild: Rebuild, before: Rebuild | None) -> None:
    """Raise ConflictError unless what is there was made for the same generation in the same way."""
    if before is None:
        raise ConflictError("--resume needs the document of the rebuild that is to go on, by --output; or --discard it")
    for name in ("group", "generation", "history", "since_us"):
        if getattr(rebuild, name) != getattr(before, name):
            raise ConflictError(
                f"what the topic holds was made with another {name.removesuffix('_us')}; run it with the options of "
                "then, or begin anew by --discard"
            )


def _forget_snapshots(log: KafkaLog, rebuild: Rebuild) -> None:
    """Delete what snapshots a discarded rebuild has left."""
    if log.is_missing(_CHECKPOINTS):
        return
    prefix = f"{rebuild.group.name}/{rebuild.generation}/".encode()
    kept: dict[tuple[int, bytes], bool] = {}
    for record in read_all(log, _CHECKPOINTS):
        if record.key is not None and record.key.startswith(prefix):
            kept[record.partition, record.key] = record.value is not None
    with closing(log.producer()) as producer:
        for (partition, key), is_kept in kept.items():
            if is_kept:
                producer.send(_CHECKPOINTS, partition, None, key=key)
