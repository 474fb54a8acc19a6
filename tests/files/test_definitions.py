"""Definitions files that load, and what they are read as."""

from pathlib import Path

import pytest

from skyband.errors import DefinitionError
from skyband.files.definitions import dump_definitions, load_definitions
from skyband.model.definitions import Definitions
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.query import Algorithm, Kind, Order, Query, Window
from skyband.model.stream import (
    Aggregate,
    Attribute,
    Fields,
    Format,
    Identity,
    IdleThen,
    Late,
    OutOfRange,
    Stream,
    TimeUnit,
)
from tests.files.definition_texts import EVERYTHING, EXAMPLE, GROUP, WHOLE, but

SECOND = 1_000_000


def test_the_example_of_the_architecture_loads() -> None:
    assert load_definitions(EXAMPLE) == Definitions(
        Group(
            name="factory",
            retention_us=600 * SECOND,
            pane_us=SECOND,
            streams=(
                Stream(
                    name="temperature", attributes=(Attribute(name="temperature", hi=100.0),), max_delay_us=2 * SECOND
                ),
                Stream(
                    name="vibration", attributes=(Attribute(name="vibration", hi=10.0),), aggregate=Aggregate.LATEST
                ),
            ),
        ),
        (
            Query(
                name="hottest",
                k=10,
                score="0.7*temperature + 3*vibration",
                window=Window(60 * SECOND, 10 * SECOND),
                order=Order.HIGHEST,
                kind=Kind.RANK,
                algorithm=Algorithm.AUTO,
            ),
        ),
    )


def test_every_key_is_read() -> None:
    definitions = load_definitions(EVERYTHING)
    moves = Stream(
        name="moves",
        attributes=(
            Attribute(name="x", lo=float("-inf"), hi=1000.0, out_of_range=OutOfRange.CLAMP, missing=-1.5),
            Attribute(name="y", lo=float("-inf"), hi=1000.0),
        ),
        is_object_stream=True,
        identity=Identity.OBJECT,
        aggregate=Aggregate.FIRST,
        repeat_after_us=MAX_TIME_US,
        max_delay_us=1_500_000,
        late=Late.DROP,
        idle_after_us=60 * SECOND,
        idle_then=IdleThen.HOLD,
        max_ahead_us=0,
        topic="the.moves",
        format=Format.CONFLUENT_AVRO,
        schema="Move",
        fields=Fields(object_id="id", event_time="at", time_unit=TimeUnit.ISO),
    )
    speed = Stream(
        name="speed",
        attributes=(Attribute(name="speed", missing=7.0),),
        repeat_after_us=3 * 3600 * SECOND,
        fields=Fields(value="v"),
    )
    assert definitions == Definitions(
        Group(
            name="everything",
            streams=(moves, speed),
            retention_us=3600 * SECOND,
            pane_us=500_000,
            retention_rows=5000,
            shards=1,
            max_drift_us=120 * SECOND,
        ),
        (
            Query(
                name="newest",
                k=100,
                order=Order.LOWEST,
                score="x + speed",
                window=Window(500, 5, in_rows=True),
                require=("speed", "moves"),
                algorithm=Algorithm.VIEW,
            ),
        ),
    )


def test_without_retention_a_group_keeps_its_longest_windows() -> None:
    text = GROUP.replace("  retention: 10m\n", "").replace("pane: 1s", "pane: 2s") + (
        "queries:\n"
        "  - {name: a, k: 1, score: temperature, window: {size: 6s}}\n"
        "  - {name: b, k: 1, score: temperature, window: {size: 8s, slide: 2s}}\n"
        "  - {name: c, k: 1, score: temperature, window: {count: 70, slide: 1}}\n"
    )
    group = load_definitions(text).group
    assert (group.pane_us, group.retention_us, group.retention_rows) == (2 * SECOND, 8 * SECOND, 70)


def test_without_slide_windows_follow_one_another() -> None:
    query = load_definitions(but((", slide: 10s", ""))).queries[0]
    assert query.window == Window(60 * SECOND, 60 * SECOND)


def test_an_object_stream_combines_by_latest_and_an_attribute_stream_by_best() -> None:
    text = "group:\n  name: g\n  retention: 1m\n  streams:\n    - name: a\n    - {name: b, attributes: [{name: x}]}\n"
    streams = load_definitions(text).group.streams
    assert [stream.aggregate for stream in streams] == [Aggregate.BEST, Aggregate.LATEST]


def test_of_errors_in_a_mapping_the_first_is_raised_with_its_path() -> None:
    document = dump_definitions(load_definitions(WHOLE))
    document["queries"][0]["window"]["slide"] = "7ms"
    document["group"]["streams"][1]["hi"] = -1
    with pytest.raises(DefinitionError, match="not below hi") as caught:
        load_definitions(document)
    assert caught.value.field == "group.streams[1].hi"
    assert caught.value.place is None
    del document["group"]["streams"][1]["hi"]
    with pytest.raises(DefinitionError, match="no multiple") as caught:
        load_definitions(document)
    assert caught.value.field == "queries[0].window.slide"


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + WHOLE.encode())
    assert load_definitions(file) == load_definitions(WHOLE)
