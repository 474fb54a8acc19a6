"""Offsets and notes on their way to Kafka."""

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaException, TopicPartition

from services.runtime.kafka_errors import UNREACHABLE, Doing, cause_of, explain
from skyband.errors import LogError
from skyband.log.record_log import Position

__all__ = ["MOST_NOTE_CHARACTERS", "check_notes", "store_commits"]

MOST_NOTE_CHARACTERS = 1_000
_PAUSE_S = 0.1


def check_notes(group: str, notes: Mapping[Position, str]) -> None:
    """Raise LogError for a note that is too long: brokers would refuse the commit, without saying why."""
    for position, note in notes.items():
        if len(note) > MOST_NOTE_CHARACTERS:
            raise LogError(
                f"group {group!r} commits topic {position.topic!r} partition {position.partition} with a note of "
                f"{len(note):,} characters; keep it within {MOST_NOTE_CHARACTERS:,}"
            )


def store_commits(consumer: Consumer, parts: Sequence[TopicPartition], patience_s: float, doing: Doing) -> None:
    """Commit, and wait until it is stored; what is bound to pass is tried again for `patience_s`.

    Raises what `explain` makes of the error: CommitRefusedError if the group shares its partitions out anew.
    """
    deadline = time.monotonic() + patience_s
    while True:
        try:
            for part in consumer.commit(offsets=list(parts), asynchronous=False):
                if part.error is not None:
                    raise KafkaException(part.error)
        except KafkaException as error:
            cause = cause_of(error)
            is_passing = cause.code() in UNREACHABLE or cause.retriable()
            if not is_passing or time.monotonic() > deadline:
                raise explain(cause, doing) from error
            time.sleep(_PAUSE_S)
        else:
            return
