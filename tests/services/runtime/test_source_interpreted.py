"""The kernel of Avro records run as plain Python: the same rows to the last bit."""

import hashlib
import random
from typing import Any

import numpy as np

from services.runtime.payloads import Payloads
from services.runtime.source_decoder import make_decoder
from skyband.model.stream import TimeUnit
from tests.interpreted import assert_same_interpreted, print_digest
from tests.services.runtime.source_reference import encode, record, stream


def schemas() -> list[dict[str, Any]]:
    enum = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    return [
        record(("object_id", "string"), ("event_time", "long"), ("value", "double")),
        record(
            ("a", ["null", "string"]),
            ("value", ["float", "null"]),
            ("object_id", ["null", "long"]),
            ("event_time", "int"),
        ),
        record(("e", enum), ("b", "boolean"), ("event_time", "double"), ("value", "long"), ("object_id", "bytes")),
        record(("value", "int"), ("event_time", "string"), ("object_id", "string"), ("f", ["null", "float"])),
    ]


def cell(kind: Any, draw: random.Random) -> Any:
    if isinstance(kind, list):
        return None if draw.random() < 0.2 else cell(next(one for one in kind if one != "null"), draw)
    match kind:
        case "string":
            return draw.choice(["", "plain", "é", "日本", "🂡", "1970-01-01T00:00:01.5Z", "12"])
        case "bytes":
            return draw.choice([b"ok", b"\xff", "é".encode()])
        case "int":
            return draw.randint(-(2**31), 2**31 - 1)
        case "long":
            return draw.choice([0, -1, 2**63 - 1, -(2**63), draw.randint(-(2**62), 2**62)])
        case "float" | "double":
            return draw.choice(
                [
                    0.0,
                    -0.0,
                    1.5,
                    float("nan"),
                    float("inf"),
                    draw.uniform(-1e9, 1e9),
                    1e300 if kind == "double" else 1e30,
                ]
            )
        case "boolean":
            return draw.random() < 0.5
    return draw.choice(kind["symbols"])


def digest() -> str:
    """Return the hash of the rows of good and of broken records."""
    draw = random.Random(11)
    found = hashlib.sha256()
    for schema in schemas():
        values = []
        for _ in range(150):
            value = encode(schema, {field["name"]: cell(field["type"], draw) for field in schema["fields"]})
            if draw.random() < 0.5:
                place = draw.randrange(len(value))
                value = draw.choice([value[:place], value[:place] + b"\xff" * draw.choice([1, 9]) + value[place + 1 :]])
            values.append(value)
        for unit in (TimeUnit.US, TimeUnit.MS, TimeUnit.S):
            decoder = make_decoder(stream(unit=unit, schema=schema))
            rows = decoder.decode(np.arange(len(values)), np.zeros(len(values), np.int64), Payloads.of(values))
            good = rows.reason == 0
            assert 5 < np.count_nonzero(good) < 140
            times, numbers = rows.event_time_us[good], rows.values[good]
            numbers[np.isnan(numbers)] = np.nan
            for column in (rows.reason, rows.id_ends, rows.id_bytes, times, numbers):
                found.update(column.tobytes())
    return found.hexdigest()


def test_interpreted_and_compiled_kernels_give_the_same_rows() -> None:
    assert_same_interpreted(__file__)


if __name__ == "__main__":
    print_digest(digest)
