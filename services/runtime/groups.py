"""Which groups are to be run, and in which generation: what the catalog says, as it changes."""

from collections.abc import Mapping

from skyband.control.catalog_events import Removed, Stored, from_record
from skyband.control.stage import CATALOG_TOPIC
from skyband.log.record_log import Position, RecordLog
from skyband.model.resources import GroupResource

__all__ = ["GroupWatch"]

_GROUP = b"groups/"
_BATCH = 1_000


class GroupWatch:
    """Follows the catalog topic; one thread owns it.

    Initially it knows of no group. After a `poll` that reached the end, `groups` is what the catalog said then;
    `next_offset` says how far it was read.
    """

    def __init__(self, log: RecordLog, catalog: str = CATALOG_TOPIC) -> None:
        self._at = Position(catalog, 0)
        self._groups: dict[str, GroupResource] = {}
        self.next_offset = 0
        self._consumer = log.consumer()
        self._consumer.assign({self._at: self._consumer.begin_offsets([self._at])[self._at]})
        self._end = self._consumer.end_offsets([self._at])[self._at]

    @property
    def groups(self) -> Mapping[str, GroupResource]:
        """The groups by name."""
        return self._groups

    @property
    def is_current(self) -> bool:
        """Whether all is read that the catalog held when this watch began."""
        return self.next_offset >= self._end

    def poll(self, timeout_s: float) -> bool:
        """Read on, waiting at most `timeout_s` for more; return whether a group has come, changed or gone."""
        changed = False
        for record in self._consumer.poll(_BATCH, timeout_s):
            self.next_offset = record.next_offset
            key = record.key or b""
            if not key.startswith(_GROUP) or key.count(b"/") != 1:
                continue
            if record.value is not None and not isinstance(record.value, Mapping):
                continue
            changed = True
            match from_record(key.decode(), record.value):
                case Stored(GroupResource() as resource):
                    self._groups[resource.group.name] = resource
                case Removed(key=name):
                    self._groups.pop(name.removeprefix("groups/"), None)
        return changed

    def close(self) -> None:
        """Stop reading."""
        self._consumer.close()
