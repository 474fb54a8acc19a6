"""What kills a rebuild: a task that dies with some of its batches written."""

import os
from pathlib import Path
from typing import Any
from unittest import mock

from services.runtime.settings import KafkaSettings
from skyband.log.record_log import Producer
from spark import rebuild_tasks
from spark.rebuild_history import AlignedHistory
from spark.rebuild_rekey import NewShards
from spark.rebuild_tasks import Done, log_of, write_rekeyed

WRITTEN = 1


class _Dying:
    """A log whose producer ends the process when Kafka has `WRITTEN` of its batches."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._log = log_of(kafka)

    def producer(self) -> Producer:
        made: Any = self._log.producer()
        sends, count = made.send, 0

        def send(*arguments: object, **options: object) -> None:
            nonlocal count
            sends(*arguments, **options)
            count += 1
            if count == WRITTEN:
                made.flush()
                os._exit(1)

        made.send = send
        return made  # type: ignore[no-any-return]


def dies_once(mark: str, kafka: KafkaSettings, topic: str, history: AlignedHistory, new: NewShards) -> Done:
    """Write new shards as tasks do; the first one to begin dies amid them."""
    try:
        Path(mark).touch(exist_ok=False)
    except FileExistsError:
        return write_rekeyed(kafka, topic, history, new)
    with mock.patch.object(rebuild_tasks, "log_of", _Dying):
        return write_rekeyed(kafka, topic, history, new)
