"""Commits on their way to Kafka."""

import time
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, TopicPartition

from services.runtime.kafka_errors import UNREACHABLE, Doing, cause_of, explain

__all__ = ["store_commits"]

_PAUSE_S = 0.1


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
