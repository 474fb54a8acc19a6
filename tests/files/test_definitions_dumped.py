"""What is dumped loads as the same, and says no more than it must."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.files.definitions import dump_definitions, load_definitions
from skyband.model.definitions import Definitions
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.stream import (
    Aggregate,
    Attribute,
    Fields,
    Format,
    IdleThen,
    Late,
    OutOfRange,
    Stream,
    TimeUnit,
)
from tests.files.definition_texts import EVERYTHING, EXAMPLE, WHOLE


@pytest.mark.parametrize("text", [EXAMPLE, WHOLE, EVERYTHING], ids=["example", "whole", "everything"])
def test_what_is_dumped_loads_as_the_same_also_through_json(tmp_path: Path, text: str) -> None:
    definitions = load_definitions(text)
    document = dump_definitions(definitions)
    assert load_definitions(document) == definitions
    file = tmp_path / "d.json"
    file.write_text(json.dumps(document, allow_nan=False), encoding="utf-8")
    assert load_definitions(file) == definitions
    # YAML reads JSON.
    assert load_definitions(json.dumps(document, indent=1)) == definitions


def test_a_dump_leaves_defaults_away() -> None:
    assert dump_definitions(load_definitions(EXAMPLE)) == {
        "group": {
            "name": "factory",
            "retention": "10m",
            "streams": [
                {"name": "temperature", "hi": 100.0, "max_delay": "2s"},
                {"name": "vibration", "hi": 10.0, "aggregate": "latest"},
            ],
        },
        "queries": [
            {
                "name": "hottest",
                "k": 10,
                "score": "0.7*temperature + 3*vibration",
                "window": {"size": "1m", "slide": "10s"},
            }
        ],
    }


ATTRIBUTES = st.builds(
    lambda lo, span, clamp, missing: {
        "lo": lo,
        "hi": lo + span,
        "out_of_range": OutOfRange.CLAMP if clamp else OutOfRange.REJECT,
        "missing": missing,
    },
    st.floats(-1e6, 1e6),
    st.floats(1, 1e6),
    st.booleans(),
    st.none() | st.floats(-1e6, 1e6),
)
DURATIONS = st.integers(0, 10**12)


@st.composite
def groups(draw: st.DrawFn) -> Group:
    streams = []
    for index in range(draw(st.integers(1, 3))):
        name = f"s{index}"
        is_object_stream = draw(st.booleans())
        attributes = [f"{name}_{i}" for i in range(draw(st.integers(1, 3)))] if is_object_stream else [name]
        streams.append(
            Stream(
                name=name,
                attributes=tuple(Attribute(name=attribute, **draw(ATTRIBUTES)) for attribute in attributes),
                is_object_stream=is_object_stream,
                aggregate=draw(st.sampled_from(Aggregate)),
                repeat_after_us=draw(st.none() | st.just(MAX_TIME_US) | st.integers(1, 10**12)),
                max_delay_us=draw(DURATIONS),
                late=draw(st.sampled_from(Late)),
                idle_after_us=draw(DURATIONS),
                idle_then=draw(st.sampled_from(IdleThen)),
                max_ahead_us=draw(DURATIONS),
                topic=draw(st.just("") | st.text(max_size=5).map(lambda text, index=index: f"{text}/{index}")),
                format=draw(st.sampled_from(Format)),
                fields=Fields(time_unit=draw(st.sampled_from(TimeUnit))),
            )
        )
    pane = draw(st.integers(1, 10**7))
    return Group(
        name="g",
        streams=tuple(streams),
        retention_us=pane * draw(st.integers(1, 1000)),
        pane_us=pane,
        retention_rows=draw(st.integers(0, 1000)),
        shards=draw(st.integers(1, 9)),
        max_drift_us=draw(DURATIONS),
    )


@given(groups())
@settings(max_examples=80, deadline=None)
def test_any_group_is_dumped_and_loaded_as_it_was(group: Group) -> None:
    definitions = Definitions(group, ())
    document = json.loads(json.dumps(dump_definitions(definitions), allow_nan=False))
    assert load_definitions(document) == definitions
