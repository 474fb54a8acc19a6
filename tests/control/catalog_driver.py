"""A catalog under commands, with all it has written: what the catalog's tests drive."""

import json

from skyband.control.catalog import Catalog
from skyband.control.catalog_events import from_record, to_record
from skyband.control.changes import changes_for
from skyband.control.commands import Command, CreateGroup, CreateQuery, CreateStream
from skyband.control.decisions import Decision, decide
from skyband.model.catalog import QueryChange
from skyband.model.query import Query, Window
from skyband.model.resources import GroupSpec
from skyband.model.stream import Attribute, Stream

SECOND = 1_000_000


def stream(name: str, hi: float = 100.0, **changes: object) -> Stream:
    return Stream(name=name, attributes=(Attribute(name=name, hi=hi),), **changes)  # type: ignore[arg-type]


def spec(name: str, *streams: str, **changes: object) -> GroupSpec:
    return GroupSpec(name=name, streams=streams, retention_us=600 * SECOND, **changes)  # type: ignore[arg-type]


def query(name: str, score: str, k: int = 10, **changes: object) -> Query:
    return Query(name=name, k=k, score=score, window=Window(60 * SECOND, 10 * SECOND), **changes)  # type: ignore[arg-type]


class Driver:
    """A catalog with the records and changes it has written, and a clock and uids that count."""

    def __init__(self) -> None:
        self.catalog = Catalog()
        self.records: dict[str, str | None] = {}
        self.changes: list[QueryChange] = []
        self.steps = 0

    def do(self, command: Command, **options: object) -> Decision:
        self.steps += 1
        decision = decide(self.catalog, command, now_us=self.steps, new_uid=f"uid{self.steps}", **options)  # type: ignore[arg-type]
        for event in decision.events:
            self.records[event.key] = json.dumps(to_record(event), allow_nan=False)
            self.catalog.apply(event)
        self.changes += changes_for(decision.events)
        return decision

    def heard(self) -> dict[str, QueryChange]:
        return {change.uid: change for change in self.changes}

    def rebuilt(self) -> Catalog:
        catalog = Catalog()
        # Compaction keeps the order of the latest records, but nothing may depend on it.
        for key, record in sorted(self.records.items(), reverse=True):
            catalog.apply(from_record(key, json.loads(record) if record else None))
        return catalog


def driver_with_a_query() -> Driver:
    """Return a driver with streams a and b, group g, and its query q."""
    driver = Driver()
    for command in (
        CreateStream(stream("a")),
        CreateStream(stream("b")),
        CreateGroup(spec("g", "a", "b")),
        CreateQuery("g", query("q", "a + b")),
    ):
        driver.do(command)
    return driver
