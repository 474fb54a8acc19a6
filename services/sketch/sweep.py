"""Removes from `statistics` what belongs to a group or a generation that is gone."""

from collections.abc import Mapping, Sequence

from services.runtime.telemetry import get_logger
from services.sketch.events import STATISTICS_REMOVED
from skyband.control.catalog_events import Retired, Stored, from_record
from skyband.control.stage import CATALOG_TOPIC
from skyband.log.record_log import Position, Record, RecordLog
from skyband.model.resources import GroupResource
from skyband.sketch.publication import Publication

__all__ = ["SWEEP_GROUP", "Sweep"]

SWEEP_GROUP = "skyband.sketch.sweep"
_BATCH = 100
_PREFIXES = (b"groups/", b"retired/")


class Sweep:
    """Follows the catalog and its share of `statistics`; one thread owns it.

    A generation is *gone* once the catalog names a later one of its group, or retires it with the group: that never
    changes back, so that it does no harm to be late. A publication of a generation that is gone gets a tombstone,
    whoever wrote it and when. Initially nothing is known to be gone.
    """

    def __init__(self, log: RecordLog, *, topic: str = "statistics", catalog: str = CATALOG_TOPIC) -> None:
        self._topic = topic
        self._gone: dict[str, int] = {}
        self._living: dict[bytes, tuple[int, str, int]] = {}
        self._producer = log.producer()
        self._catalog = log.consumer()
        at = Position(catalog, 0)
        self._catalog.assign({at: self._catalog.begin_offsets([at])[at]})
        self._consumer = log.consumer(SWEEP_GROUP)
        self._consumer.subscribe([topic], self)

    def on_assigned(self, positions: Sequence[Position]) -> Mapping[Position, int]:
        """Read the partitions from their beginning."""
        return self._consumer.begin_offsets(positions)

    def on_revoked(self, positions: Sequence[Position], *, lost: bool) -> None:
        """Leave the partitions to whoever takes them."""
        numbers = {at.partition for at in positions}
        self._living = {key: its for key, its in self._living.items() if its[0] not in numbers}

    def step(self, timeout_s: float) -> bool:
        """Read on, and remove what is gone; return whether anything was read."""
        changes = self._catalog.poll(_BATCH, 0.0)
        for record in changes:
            self._learn(record)
        records = self._consumer.poll(_BATCH, timeout_s)
        for record in records:
            key = record.key or b""
            if isinstance(record.value, Publication):
                self._living[key] = record.partition, record.value.group, record.value.generation
            else:
                self._living.pop(key, None)
        self._remove()
        return bool(changes or records)

    def close(self) -> None:
        """Stop."""
        for client in (self._consumer, self._catalog, self._producer):
            client.close()

    abandon = close

    def _learn(self, record: Record) -> None:
        key = record.key or b""
        if not key.startswith(_PREFIXES) or key.count(b"/") != 1 or not isinstance(record.value, Mapping):
            return
        match from_record(key.decode(), record.value):
            case Stored(GroupResource() as resource):
                name, last = resource.group.name, resource.generation - 1
            case Retired(group=name, generation=last):
                pass
            case _:
                return
        self._gone[name] = max(last, self._gone.get(name, -1))

    def _remove(self) -> None:
        for key, (partition, group, generation) in list(self._living.items()):
            if generation <= self._gone.get(group, -1):
                self._producer.send(self._topic, partition, None, key=key)
                del self._living[key]
                get_logger(group=group, generation=generation).info(STATISTICS_REMOVED, key=key.decode())
        self._producer.flush()
