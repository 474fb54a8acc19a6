"""The control stage: the one writer of the catalog, and the one who knows how everything is doing.

The catalog topic has one partition and is compacted. It holds:

- catalog events, as plain dicts, under the keys of `catalog_events`: control reads them back at its start;
- ``changes/<uid>``: the newest QueryChange of each query: align hands these to the shards, and skips all others;
- ``opened``: which control wrote last.

A command is decided, written in one transaction, and only then applied: what was answered survives. A query's event
comes before its change; where a log cannot keep them together, the change is written at the next start.

One control writes. Its producer's transactional id shuts out any other that still thinks it does; the others follow.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, tzinfo

from skyband.control.catalog import Catalog, Page
from skyband.control.catalog_events import VERSION, CatalogEvent, Removed, Stored, from_record, to_record
from skyband.control.changes import changes_for, missing_changes
from skyband.control.commands import Command, RegenerateGroup
from skyband.control.decisions import decide
from skyband.control.describe import Description, describe
from skyband.control.explain import explain
from skyband.control.knowledge import Knowledge
from skyband.control.statuses import StatusBoard
from skyband.errors import LogError
from skyband.log.clock import Clock
from skyband.log.record_log import Consumer, Position, Producer, Record, RecordLog
from skyband.model.catalog import QueryChange
from skyband.model.published_statistics import PublishedStatistics
from skyband.model.rebuild import Rebuild
from skyband.model.resources import GroupResource, Resource
from skyband.model.status import QueryStatus

__all__ = ["CATALOG_TOPIC", "PROGRESS_TOPIC", "ControlStage"]

CATALOG_TOPIC = "catalog"
PROGRESS_TOPIC = "progress"
_OPENED = b"opened"
_WRITER = "skyband.control"
_BATCH = 1_000
_PATIENCE = 30
# Reports are absolute and come every second, so that the last few of each partition tell all.
_REPORTS_READ = 5_000


class ControlStage:
    """Executes commands, answers questions. One thread owns it.

    Both topics must exist. A control that `writes` is *open* from its construction, which reads the whole catalog
    topic; it is *failed* after a write whose outcome is unknown, and then refuses commands: build a new one, which
    reads what was written. One that does not write follows the catalog with each `poll`, and refuses all commands.

    `prepare` is called with each new generation of a group before the catalog names it: it makes what the stages need.
    `take_over` is called instead with one that was rebuilt.
    """

    def __init__(
        self,
        log: RecordLog,
        clock: Clock,
        new_uid: Callable[[], str],
        *,
        catalog_topic: str = CATALOG_TOPIC,
        progress_topic: str = PROGRESS_TOPIC,
        writes: bool = True,
        prepare: Callable[[GroupResource], None] | None = None,
        take_over: Callable[[GroupResource, Rebuild], None] | None = None,
    ) -> None:
        self._clock = clock
        self._new_uid = new_uid
        self._topic = catalog_topic
        self._prepare = prepare
        self._take_over = take_over
        self._catalog = Catalog()
        self._board = StatusBoard()
        self._failed = ""
        self._producer: Producer | None = log.producer(_WRITER) if writes else None
        self._follower: Consumer | None = None
        if self._producer is not None:
            self._rebuild(log.consumer(), self._producer)
        else:
            self._follower = log.consumer()
            self._follower.assign({Position(catalog_topic, 0): 0})
        self._progress = log.consumer()
        partitions = [Position(progress_topic, partition) for partition in range(log.partitions(progress_topic))]
        begin, end = self._progress.begin_offsets(partitions), self._progress.end_offsets(partitions)
        self._progress.assign({at: max(begin[at], end[at] - _REPORTS_READ) for at in partitions})

    @property
    def writes(self) -> bool:
        """Whether this control executes commands."""
        return self._producer is not None

    @property
    def catalog(self) -> Catalog:
        """The catalog, to be read only."""
        return self._catalog

    @property
    def failed(self) -> str:
        """Why the writer writes no more; empty while it does."""
        return self._failed

    def execute(self, command: Command, *, request_id: str = "", validate_only: bool = False) -> Resource | None:
        """Do `command` and return the resource as it is now, None if it is gone.

        With `validate_only` nothing changes, and the resource is as it would be. Raises what `decide` raises, and
        LogError if the catalog topic does not take the change.
        """
        if self._producer is None:
            raise LogError("this control only reads, another one writes the catalog; send the request to that one")
        if self._failed:
            raise LogError(
                f"control cannot write the catalog since an earlier write failed ({self._failed}); restart it"
            )
        decision = decide(
            self._catalog,
            command,
            now_us=self._clock.now_us(),
            new_uid=self._new_uid(),
            request_id=request_id,
            validate_only=validate_only,
        )
        if decision.events:
            self._make_ready(decision.events, command.rebuild if isinstance(command, RegenerateGroup) else None)
            self._write(decision.events, self._producer)
        return decision.resource

    def poll(self, max_records: int = _BATCH, timeout_s: float = 0.0) -> int:
        """Take in reports of the other stages, and what another control has written; return how many records."""
        if self._follower is not None:
            for record in self._follower.poll(max_records, 0.0):
                self._apply_record(record)
        records = self._progress.poll(max_records, timeout_s)
        for record in records:
            self._board.fold(record.value)
        return len(records)

    def page(self, collection: str, page_size: int = 0, token: str = "") -> Page:
        """Return part of a list of resources (see Catalog.page)."""
        return self._catalog.page(collection, page_size, token)

    def explain(
        self, group: str, query: str, statistics: PublishedStatistics | None = None, why_unknown: str = ""
    ) -> str:
        """Return the plan of a query in words, and what is known of it.

        `statistics` are those of its group in its window; those of another generation than the group's do not count.
        `why_unknown`: see Knowledge.
        """
        resource, of_group = self._catalog.query(group, query), self._catalog.group(group)
        if statistics is not None and statistics.generation != of_group.generation:
            statistics = None
        knowledge = Knowledge(
            now_us=self._clock.now_us(),
            status=self.status(group, query),
            statistics=statistics,
            why_unknown=why_unknown,
        )
        return explain(of_group.group, resource.query, resource.plan, knowledge)

    def status(self, group: str, query: str) -> QueryStatus:
        """Return how a query is doing, as a value."""
        return self._board.status(self._catalog.query(group, query), self._catalog.group(group))

    def describe(self, group: str, query: str, zone: tzinfo = UTC) -> Description:
        """Return how a query is doing, in words, with times shown in `zone`."""
        resource = self._catalog.query(group, query)
        status = self.status(group, query)
        return describe(resource, self._catalog.group(group).group, status, self._clock.now_us(), zone)

    def close(self) -> None:
        """Give up the log."""
        for client in (self._producer, self._follower, self._progress):
            if client is not None:
                client.close()

    def _make_ready(self, events: tuple[CatalogEvent, ...], rebuild: Rebuild | None) -> None:
        """Have made what new generations need; raises what `prepare` raises, and then nothing is written."""
        for event in events:
            if not isinstance(event, Stored) or not isinstance(event.resource, GroupResource):
                continue
            before = self._catalog.find(event.resource.name)
            if isinstance(before, GroupResource) and before.generation == event.resource.generation:
                continue
            if rebuild is None and self._prepare is not None:
                self._prepare(event.resource)
            if rebuild is not None and self._take_over is not None:
                self._take_over(event.resource, rebuild)

    def _write(self, events: tuple[CatalogEvent, ...], producer: Producer) -> None:
        now_us = self._clock.now_us()
        try:
            with producer.transaction():
                for event in events:
                    producer.send(self._topic, 0, to_record(event), key=event.key.encode(), timestamp_us=now_us)
                for change in changes_for(events):
                    self._send_change(change, producer)
        except LogError as error:
            self._failed = str(error)
            raise
        for event in events:
            self._catalog.apply(event)
            if isinstance(event, Removed) and isinstance(event.resource, GroupResource):
                self._board.forget(event.resource.group.name)

    def _send_change(self, change: QueryChange, producer: Producer) -> None:
        key = f"changes/{change.uid}".encode()
        producer.send(self._topic, 0, change, key=key, timestamp_us=self._clock.now_us())

    def _rebuild(self, consumer: Consumer, producer: Producer) -> None:
        """Read the whole topic into the catalog, and tell the shards what they should have heard."""
        # Where the topic ends, a log may not tell (offsets can hold no record): an own record at the end does.
        mark = {"version": VERSION, "kind": "opened", "writer": self._new_uid()}
        with producer.transaction():
            producer.send(self._topic, 0, mark, key=_OPENED, timestamp_us=self._clock.now_us())
        heard: dict[str, QueryChange] = {}
        for record in _read_to(consumer, self._topic, mark):
            if isinstance(record.value, QueryChange):
                heard[record.value.uid] = record.value
            else:
                self._apply_record(record)
        missing = missing_changes(self._catalog, heard)
        if missing:
            with producer.transaction():
                for change in missing:
                    self._send_change(change, producer)

    def _apply_record(self, record: Record) -> None:
        if record.key not in (None, _OPENED) and (record.value is None or isinstance(record.value, Mapping)):
            self._catalog.apply(from_record((record.key or b"").decode(), record.value))


def _read_to(consumer: Consumer, topic: str, mark: Mapping[str, object]) -> Iterator[Record]:
    """Yield the records of partition 0 from its beginning to `mark`."""
    consumer.assign({Position(topic, 0): 0})
    empty = 0
    while empty < _PATIENCE:
        records = consumer.poll(_BATCH, 1.0)
        empty = 0 if records else empty + 1
        for record in records:
            if record.key == _OPENED and record.value == mark:
                consumer.close()
                return
            yield record
    raise LogError(f"topic {topic!r} does not give back what was just written to it; see whether the log is well")
