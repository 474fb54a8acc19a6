"""Groups with rows, written to source topics partition by partition, and the results that are right for them."""

import csv
import gzip
import json
import math
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import skyband
from services.produce.encode import Encode, make_encoder
from skyband.client import Client
from skyband.files.definitions import load_definitions
from skyband.model.duration import format_duration
from skyband.model.group import Group
from skyband.model.query import Query
from skyband.model.query_form import dump_query
from skyband.model.stream import Stream
from skyband.model.stream_form import dump_stream
from tests.oracle import Row, oracle_results
from tests.workloads import seeded

__all__ = [
    "Answer",
    "Record",
    "Scenario",
    "create_query",
    "define",
    "flights",
    "make_topics",
    "mixed",
    "seeded_scenario",
]

S = 1_000_000
_DATA = Path(skyband.__file__).parent / "local" / "data"
# An evaluation: the rows of a result, as (rank, object, score, attributes, event time).
Answer = tuple[tuple[int, str, float, tuple[tuple[str, float], ...], int | None], ...]


class Record(NamedTuple):
    """One record to write."""

    topic: str
    partition: int
    value: bytes | None


@dataclass(frozen=True)
class Scenario:
    """A group, its queries, and the rows of each (stream, source partition), in order.

    `order` is in which order the rows of the partitions come: one place a row.
    """

    group: Group
    queries: tuple[Query, ...]
    partitions: dict[tuple[int, int], list[Row]]
    order: tuple[tuple[int, int], ...]

    def topic(self, stream: int) -> str:
        """Return the name of a stream's topic."""
        its = self.group.streams[stream]
        return its.topic or its.name

    def topics(self) -> dict[str, int]:
        """Return the source topics with their numbers of partitions."""
        counts: dict[str, int] = {}
        for stream, partition in self.partitions:
            name = self.topic(stream)
            counts[name] = max(counts.get(name, 0), partition + 1)
        return counts

    def records(self) -> list[Record]:
        """Return all rows as records, in the order in which they come."""
        encoders: list[Encode] = [make_encoder(stream) for stream in self.group.streams]
        rows = {place: iter(part) for place, part in self.partitions.items()}
        return [
            Record(
                self.topic(place[0]),
                place[1],
                encoders[place[0]](row.object_id, row.event_time_us, list(row.values)),
            )
            for place in self.order
            for row in [next(rows[place])]
        ]

    def first(self, rows: int) -> "Scenario":
        """Return the scenario with only the first so many rows."""
        order = self.order[:rows]
        partitions = {place: part[: order.count(place)] for place, part in self.partitions.items()}
        return replace(self, partitions=partitions, order=order)

    def closed(self, after_us: int) -> "Scenario":
        """Return the scenario with one more row in each partition, so much later than all others.

        They bring every result of the rows before them, without any partition having to be idle.
        """
        last = max(row.event_time_us for part in self.partitions.values() for row in part)
        time_us = (last + after_us) // S * S
        partitions = {
            place: [*part, Row(f"closing-{place[1]}", time_us, _lowest(self.group.streams[place[0]]))]
            for place, part in self.partitions.items()
        }
        return replace(self, partitions=partitions, order=(*self.order, *partitions))

    def expected(self) -> dict[tuple[str, int], Answer]:
        """Return the right answers by (query, window end), as far as watermarks alone bring them."""
        return {
            (result["query"], result["window_end"]): tuple(map(_answer_row, result["rows"]))
            for result in oracle_results(self.group, self.queries, self.partitions)
        }

    def frontier_us(self) -> int:
        """Return the least watermark of the partitions at the end of their rows."""
        return min(
            max(row.event_time_us for row in part) - self.group.streams[stream].max_delay_us
            for (stream, _), part in self.partitions.items()
        )

    def expected_so_far(self) -> dict[tuple[str, int], Answer]:
        """Return the right answers up to the frontier, for partitions that hold it when they are idle."""
        limit = self.frontier_us()
        return {key: answer for key, answer in self.expected().items() if key[1] <= limit}


def _answer_row(row: Mapping[str, Any]) -> tuple[int, str, float, tuple[tuple[str, float], ...], int | None]:
    attributes = tuple(sorted(row["attributes"].items()))
    return row["rank"], row["object_id"], row["score"], attributes, row.get("event_time")


def _lowest(stream: Stream) -> tuple[float, ...]:
    return tuple(a.lo if math.isfinite(a.lo) else 0.0 for a in stream.attributes)


# --- making them


def mixed(name: str, rows: int, *, idle: Mapping[str, str], seed: int = 1, shards: int = 3) -> Scenario:
    """Return a group whose streams have all formats and units of time there are, an object stream among them."""
    common: dict[str, Any] = {"hi": 100, "idle": dict(idle), "max_delay": "3s"}
    bundled = {
        "type": "record",
        "name": "Reading",
        "fields": [
            {"name": "note", "type": ["null", "string"], "default": None},
            {"name": "sensor", "type": "string"},
            {"name": "at", "type": "long"},
            {"name": "value", "type": ["null", "float"]},
        ],
    }
    streams = [
        {"name": f"{name}_plain", **common, "aggregate": "sum"},
        {
            "name": f"{name}_framed",
            **common,
            "format": "confluent-avro",
            "schema": json.dumps({"7": bundled}),
            "fields": {"object_id": "sensor", "event_time": "at", "time_unit": "ms"},
        },
        {"name": f"{name}_text", **common, "format": "json", "fields": {"time_unit": "iso"}, "aggregate": "latest"},
        {"name": f"{name}_whole", **common, "format": "json", "fields": {"time_unit": "s"}, "late": "drop"},
        {
            "name": f"{name}_points",
            "attributes": [{"name": f"{name}_x", "hi": 100}, {"name": f"{name}_y", "lo": -50, "hi": 50}],
            "idle": dict(idle),
            "max_delay": "3s",
            "fields": {"time_unit": "ms"},
        },
    ]
    queries = [
        {
            "name": "sums",
            "k": 5,
            "score": f"{name}_plain + 2*{name}_framed + {name}_text",
            "window": {"size": "20s", "slide": "2s"},
        },
        {
            "name": "all",
            "k": 3,
            "score": f"{name}_whole - {name}_x",
            "order": "lowest",
            "require": [f"{name}_whole", f"{name}_points"],
            "window": {"size": "30s", "slide": "5s"},
        },
        {
            "name": "far",
            "k": 4,
            "score": f"max({name}_x, {name}_y) + {name}_text",
            "window": {"size": "10s", "slide": "1s"},
        },
    ]
    group = {"name": name, "retention": "40s", "shards": shards, "streams": _on_topics(name, streams)}
    found = load_definitions({"group": group, "queries": queries})
    random_ = random.Random(seed)
    units = (1, 1_000, 1, S, 1_000)
    counts = (3, 2, 2, 1, 2)
    partitions: dict[tuple[int, int], list[Row]] = {(s, p): [] for s, n in enumerate(counts) for p in range(n)}
    order = []
    begin = 1_700_000_000 * S
    for i in range(rows):
        stream = random_.randrange(len(counts))
        place = (stream, random_.randrange(counts[stream]))
        # A quarter of a second a row; every fourth or so is later than its stream promises: when it counts then depends
        # on the watermark of its partition, which whoever takes the partition over must know.
        late = random_.choice((0, 0, 1, 2, 9, 9)) * random_.random()
        time_us = int(begin + i * 250_000 - late * S) // units[stream] * units[stream]
        values = tuple(round(random_.uniform(a.lo, a.hi), 2) for a in found.group.streams[stream].attributes)
        if stream == 1:
            values = (float(int(values[0] * 4) / 4),)  # a float of 32 bits holds it as it is
        if random_.random() < 0.02:
            values = (1_000.0, *values[1:])  # out of range
        partitions[place].append(Row(f"o-{random_.randrange(30)}", time_us, values))
        order.append(place)
    return Scenario(found.group, found.queries, partitions, tuple(order))


def seeded_scenario(name: str, seed: int, size: int, *, idle_after_us: int, shards: int = 2) -> Scenario:
    """Return one of the workloads of all tests, with names of its own, for names of streams are the cluster's."""
    group, queries, rows = seeded(seed, size, counts=False)
    mine = re.compile(r"\b(" + "|".join({*group.attribute_names, *(s.name for s in group.streams)}) + r")\b")

    def renamed(text: str) -> str:
        return mine.sub(rf"{name}_\1", text)

    streams = tuple(
        replace(
            stream,
            name=renamed(stream.name),
            attributes=tuple(replace(a, name=renamed(a.name)) for a in stream.attributes),
            idle_after_us=idle_after_us,
            topic=f"{name}-{stream.name}",
        )
        for stream in group.streams
    )
    asked = tuple(replace(q, score=renamed(q.score), require=tuple(map(renamed, q.require))) for q in queries)
    its = replace(group, name=name, streams=streams, shards=shards)
    return Scenario(its, asked, rows, tuple(place for place, part in rows.items() for _ in part))


def flights(name: str, rows: int, *, idle: Mapping[str, str]) -> Scenario:
    """Return the first so many of the flights of the demo, dealt out over partitions without regard to the object."""
    found = load_definitions(_DATA / "flights.yaml")
    after_us = int(float(idle["after"].removesuffix("s")) * S)
    streams = tuple(
        replace(stream, topic=f"{name}-{stream.name}", idle_after_us=after_us, max_delay_us=3_600 * S)
        for stream in found.group.streams
    )
    group = replace(found.group, name=name, streams=streams, shards=2)
    index = {stream.name: i for i, stream in enumerate(streams)}
    partitions: dict[tuple[int, int], list[Row]] = {(s, p): [] for s in range(len(streams)) for p in range(3)}
    order = []
    with gzip.open(_DATA / "flights_2013_07.csv.gz", "rt", encoding="utf-8") as lines:
        for number, line in enumerate(csv.DictReader(lines)):
            if number == rows:
                break
            place = (index[line["stream"]], number * 7 % 3)
            partitions[place].append(Row(line["object_id"], int(line["event_time"]), (float(line["value"]),)))
            order.append(place)
    return Scenario(group, found.queries, partitions, tuple(order))


def _on_topics(name: str, streams: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**stream, "topic": f"{name}-{stream['name']}"} for stream in streams]


# --- using them


def make_topics(bootstrap: str, scenario: Scenario, *, only: str | None = None) -> None:
    """Make the source topics, or only one of them."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = [NewTopic(topic, count, 1) for topic, count in scenario.topics().items() if only in (None, topic)]
    for made in admin.create_topics(new).values():
        made.result()


def define(client: Client, scenario: Scenario) -> dict[str, str]:
    """Create streams, group and queries; return the uid of each query."""
    group = scenario.group
    for stream in group.streams:
        client.create_stream(stream.name, **_stream_options(stream))
    client.create_group(
        group.name,
        streams=[stream.name for stream in group.streams],
        retention=format_duration(group.retention_us),
        pane=format_duration(group.pane_us),
        shards=group.shards,
    )
    return {query.name: create_query(client, group.name, query) for query in scenario.queries}


def create_query(client: Client, group: str, query: Query) -> str:
    """Add a query and return its uid."""
    document = dump_query(query)
    window = document.pop("window")
    document.pop("kind", None)
    document["slide"] = window["slide"]
    return client.create_query(group, window=window.get("size", window.get("count")), **document).resource.stamp.uid


def _stream_options(stream: Stream) -> Any:
    options = dump_stream(stream)
    del options["name"]
    return options
