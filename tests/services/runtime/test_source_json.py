"""JSON records: what their fields may be, and that the quick way and the sure way read the same."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from services.runtime import source_json
from services.runtime.source_decoder import make_decoder
from skyband.model.source_rows import Reason, SourceRows
from skyband.model.stream import Format, TimeUnit
from tests.services.runtime.source_reference import bits, decode, ids, stream

TABLE = [
    ('{"object_id": "a", "event_time": 5, "value": 1.5}', 0, (b"a", 5_000, 1.5)),
    ('{"event_time": "1970-01-01T00:00:01+00:00", "value": 2, "object_id": "é"}', 0, ("é".encode(), 1_000_000, 2.0)),
    (' {"object_id": 17, "event_time": "-5", "value": -0, "more": [{}]}\n', 0, (b"17", -5_000, 0.0)),
    ('{"object_id": 12345678901234567890, "event_time": 1.5, "value": 1e3}', 0, (b"12345678901234567890", 1_500, 1e3)),
    ('{"event_time": 5, "value": 1}', 0, (b"", 5_000, 1.0)),
    ('{"object_id": null, "event_time": 5, "value": 1}', 0, (b"", 5_000, 1.0)),
    ('{"object_id": "", "event_time": 5, "value": 1}', 0, (b"", 5_000, 1.0)),
    ('{"object_id": "a", "event_time": 5, "value": NaN}', 0, (b"a", 5_000, float("nan"))),
    ('{"object_id": "a", "event_time": 5, "value": 1e999}', 0, (b"a", 5_000, float("inf"))),
    ('{"object_id": "a", "event_time": 5, "value": -1' + "0" * 400 + "}", 0, (b"a", 5_000, float("-inf"))),
    ('{"object_id": "b", "object_id": "a", "event_time": 5, "value": 1}', 0, (b"a", 5_000, 1.0)),
    ('{"object_id": "a", "value": 1}', Reason.BAD_TIME, "event_time is empty"),
    ('{"object_id": "a", "event_time": "later", "value": 1}', Reason.BAD_TIME, "event_time 'later' is no time in"),
    ('{"object_id": "a", "event_time": true, "value": 1}', Reason.BAD_TIME, "event_time true is no time in milli"),
    ('{"object_id": "a", "event_time": 1e99, "value": 1}', Reason.BAD_TIME, "event_time 1e+99 is no time in"),
    ('{"object_id": "a", "event_time": 5}', Reason.UNDECODABLE, "value is empty"),
    ('{"object_id": "a", "event_time": 5, "value": null}', Reason.UNDECODABLE, "value is empty"),
    ('{"object_id": "a", "event_time": 5, "value": "1.5"}', Reason.UNDECODABLE, "value '1.5' is not a number"),
    ('{"object_id": "a", "event_time": 5, "value": false}', Reason.UNDECODABLE, "value false is not a number"),
    ('{"object_id": "a", "event_time": 5, "value": [1]}', Reason.UNDECODABLE, "value [1] is not a number"),
    ('{"object_id": 1.5, "event_time": 5, "value": 1}', Reason.UNDECODABLE, "object_id 1.5 is neither text nor a"),
    ('{"object_id": true, "event_time": 5, "value": 1}', Reason.UNDECODABLE, "object_id true is neither text nor a"),
    ('{"object_id": "\\ud800", "event_time": 5, "value": 1}', Reason.UNDECODABLE, "holds half a character"),
    ('{"object_id": "a", "event_time": null, "value": "x"}', 1, "event_time is empty, value 'x' is not"),
    ("", Reason.UNDECODABLE, "record is not JSON (character 1: expecting value)"),
    ('{"object_id": "a"', Reason.UNDECODABLE, "record is not JSON (character 18: expecting ',' delimiter)"),
    ("[1]", Reason.UNDECODABLE, "record is JSON, but no object"),
    ("[" * 100_000, Reason.UNDECODABLE, "nests too deeply"),
    ('{"n": ' + "1" * 5_000 + "}", Reason.UNDECODABLE, "record cannot be decoded: Exceeds the limit"),
    (None, Reason.UNDECODABLE, "record has no value"),
    (b'{"object_id": "\xff", "event_time": 5, "value": 1}', Reason.UNDECODABLE, "record is not UTF-8"),
]  # fmt: skip
DECODER = make_decoder(stream(Format.JSON, TimeUnit.MS))


def as_bytes(text: str | bytes | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


@pytest.mark.parametrize(("text", "reason", "right"), TABLE)
def test_a_record_is_read_or_refused_with_the_reason(text: Any, reason: int, right: Any) -> None:
    rows = decode(DECODER, [as_bytes(text)])
    assert rows.reason.tolist() == [reason]
    if reason:
        assert right in rows.explain(0)
    else:
        assert (ids(rows)[0], rows.event_time_us[0], bits(rows.values[0, 0])) == (right[0], right[1], bits(right[2]))


def shown(rows: SourceRows) -> list[Any]:
    return [
        # The other cells of a row that cannot be decoded mean nothing.
        (reason, name if reason == Reason.BAD_TIME else b"") if reason else (reason, name, time_us, *map(bits, cells))
        for reason, name, time_us, cells in zip(
            rows.reason.tolist(), ids(rows), rows.event_time_us.tolist(), rows.values.tolist(), strict=True
        )
    ]


@pytest.mark.parametrize("unit", [TimeUnit.MS, TimeUnit.ISO, TimeUnit.KAFKA])
def test_what_a_record_means_does_not_depend_on_its_neighbours(unit: TimeUnit) -> None:
    decoder = make_decoder(stream(Format.JSON, unit))
    values = [as_bytes(text) for text, _, _ in TABLE]
    good = b'{"object_id": "g", "event_time": 5, "value": 1}'
    alone = [shown(decode(decoder, [value]))[0] for value in values]
    assert shown(decode(decoder, values)) == alone
    for value, right in zip(values, alone, strict=True):
        rows = decode(decoder, [good] * 40 + [value] + [good] * 40)
        assert shown(rows)[40] == right
        assert shown(rows)[80] == shown(decode(decoder, [good]))[0]


NAMES = st.sampled_from(["a", "é", "", "🂡", '"', "\\", "}\n{", "\ud800", "\udc00", "x" * 20])
TIMES = st.one_of(
    st.integers(-(2**65), 2**65),
    st.integers(0, 2**43),
    st.floats(),
    st.floats(0, 2e9),
    st.sampled_from(["2024-02-03T04:05:06Z", "2024-02-03 04:05:06.123456+01:00", "12", "1.5", "", "x"]),
)
NUMBERS = st.one_of(st.floats(), st.integers(-(2**70), 2**70), st.sampled_from([-0.0, 5e-324, 0.1, 2**53 + 1]))
ODD = st.sampled_from([None, True, False, [], {}, [1, {"a": []}], {"object_id": "inner"}, 1.0, "1", 7])
KINDS: dict[str, list[st.SearchStrategy[Any]]] = {
    "object_id": [NAMES, st.integers(-(2**70), 2**70), st.integers(-(2**40), 2**40)],
    "event_time": [TIMES, st.integers(0, 2**43), st.floats(0, 2e9), st.just("2024-02-03T04:05:06Z")],
    "value": [NUMBERS, st.floats(-1e6, 1e6)],
}


@st.composite
def records(draw: st.DrawFn) -> list[bytes]:
    """A chunk of records of one make, rarely with another among them."""
    makes = {name: draw(st.sampled_from(kinds)) for name, kinds in KINDS.items()}
    found = []
    for _ in range(draw(st.integers(1, 5))):
        row = {name: draw(make) for name, make in makes.items()}
        if draw(st.integers(0, 5)) == 0:
            row[draw(st.sampled_from(["object_id", "event_time", "value", "other"]))] = draw(ODD)
        if draw(st.integers(0, 7)) == 0:
            row.pop(draw(st.sampled_from(sorted(row))))
        text = json.dumps(row, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, None, None, 1])))
        found.append(text.encode("utf-8", "surrogatepass"))
    return found


@given(records(), st.sampled_from(list(TimeUnit)))
@settings(max_examples=150)
def test_the_quick_way_reads_what_the_sure_way_reads(values: list[bytes], unit: TimeUnit) -> None:
    decoder = make_decoder(stream(Format.JSON, unit))
    # Few records are read one by one, many at once.
    assert shown(decode(decoder, values * 32)) == shown(decode(decoder, values)) * 32


@given(
    st.lists(
        st.sampled_from(["{", "}", "[", "]", ",", ":", '"', "a", "1", "\n", " ", '{"value":1}', "\\"]), max_size=12
    )
)
@example([*'{"x":[{}', "\n"])
@settings(max_examples=120)
def test_no_bytes_make_records_run_into_one_another(parts: list[str]) -> None:
    value = "".join(parts).encode()
    good = b'{"object_id": "g", "event_time": 5, "value": 1}'
    for chunk in ([good, value], [good, value, value], [good, b'{"object_id": "' + value, value + b'"}']):
        assert shown(decode(DECODER, chunk * 32)) == shown(decode(DECODER, chunk)) * 32


def test_ordinary_records_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"object_id": f"o{index}", "event_time": 1_690_000_000_000 + index, "value": index / 8, "more": [{"a": 1}]}
        for index in range(100)
    ]
    values = [json.dumps(row).encode() for row in rows]
    sure = shown(decode(DECODER, values[:10]))

    def refuse(value: bytes) -> Any:
        raise AssertionError("read one by one")

    first = source_json._read(values[0])
    monkeypatch.setattr(source_json, "_read", lambda value: first if value == values[0] else refuse(value))
    assert shown(decode(DECODER, values))[:10] == sure


def test_an_object_stream_has_a_field_for_each_attribute() -> None:
    decoder = make_decoder(stream(Format.JSON, attributes=("x", "y"), object_id="id", event_time="t"))
    rows = decode(decoder, [b'{"id": 1, "t": 2, "x": 3, "y": 4, "value": 5}', b'{"id": 1, "t": 2, "x": 3}'] * 20)
    assert rows.values[0].tolist() == [3.0, 4.0]
    assert rows.reason.tolist() == [0, Reason.UNDECODABLE] * 20
    assert rows.explain(1) == "y is empty"
