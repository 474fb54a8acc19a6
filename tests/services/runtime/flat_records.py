"""Flat Avro schemas and records for property tests, and what a decoder must make of them."""

from typing import Any

from hypothesis import strategies as st

from skyband.model.source_rows import Reason, SourceRows
from skyband.model.stream import Format, Stream, TimeUnit
from tests.services.runtime.source_reference import bits, encode, ids, record, stream

LONGS = st.integers(-(2**63), 2**63 - 1)
INTS = st.integers(-(2**31), 2**31 - 1)
TEXTS = st.text(max_size=12)
COLOURS = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN", "BLUE"]}
HASH = {"type": "fixed", "name": "Hash", "size": 3}
CELLS: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": INTS,
    "long": LONGS,
    "float": st.floats(width=32),
    "double": st.floats(),
    "bytes": st.binary(max_size=12),
    "string": TEXTS,
    "enum": st.sampled_from(COLOURS["symbols"]),
    "fixed": st.binary(min_size=3, max_size=3),
}
ID_KINDS = ["string", "bytes", "int", "long"]
VALUE_KINDS = ["int", "long", "float", "double"]
TIME_UNITS = [TimeUnit.US, TimeUnit.MS, TimeUnit.S, TimeUnit.KAFKA]


@st.composite
def flat_schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Schemas with id, time and two values among fields of no role, in any order, also in unions with null."""
    kinds = {"who": draw(st.sampled_from(ID_KINDS)), "at": draw(st.sampled_from(["int", "long", "double"]))}
    kinds |= {name: draw(st.sampled_from(VALUE_KINDS)) for name in ("x", "y")}
    unused = draw(st.lists(st.sampled_from(sorted(CELLS)), max_size=5))
    kinds |= {f"unused{index}": kind for index, kind in enumerate(unused)}
    fields, named = [], {"enum": COLOURS, "fixed": HASH}
    for name in draw(st.permutations(sorted(kinds))):
        kind = kinds[name]
        # A named type is written out where it comes first, and by name from then on.
        main = named.get(kind, kind)
        if kind in named:
            named[kind] = named[kind]["name"] if isinstance(named[kind], dict) else named[kind]
        order = draw(st.sampled_from(["", "first", "second"])) if kind != "null" else ""
        fields.append((name, {"": main, "first": ["null", main], "second": [main, "null"]}[order]))
    return record(*fields)


def kind_of(kind: Any) -> tuple[str, bool]:
    """Return the kind of a field, and whether it may be null."""
    if isinstance(kind, list):
        return kind_of(next(branch for branch in kind if branch != "null"))[0], True
    return {"Colour": "enum", "Hash": "fixed"}.get(kind, kind) if isinstance(kind, str) else kind["type"], False


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with named types written out everywhere."""
    named = {"Colour": COLOURS, "Hash": HASH}

    def out(kind: Any) -> Any:
        return (
            [out(one) for one in kind]
            if isinstance(kind, list)
            else named.get(kind, kind)
            if isinstance(kind, str)
            else kind
        )

    return record(*((field["name"], out(field["type"])) for field in schema["fields"]))


def cells_of(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    found = {}
    for field in schema["fields"]:
        kind, is_nullable = kind_of(field["type"])
        cells = CELLS[kind]
        found[field["name"]] = st.one_of(st.none(), cells) if is_nullable else cells
    return st.fixed_dictionaries(found)


@st.composite
def encoded(draw: st.DrawFn) -> tuple[dict[str, Any], list[bytes]]:
    schema = draw(flat_schemas())
    values = draw(st.lists(cells_of(schema), max_size=6))
    return schema, [encode(schema, value) for value in values]


def expected(value: dict[str, Any] | None, unit: TimeUnit) -> tuple[Any, ...]:
    """Return what a row of an object stream of x and y is for a record, written down without haste."""
    if value is None or value["x"] is None or value["y"] is None:
        return (Reason.UNDECODABLE,)
    who, at = value["who"], value["at"]
    if isinstance(who, bytes):
        try:
            who = who.decode()
        except UnicodeDecodeError:
            return (Reason.UNDECODABLE,)
    name = b"" if who is None else str(who).encode()
    found = (name, bits(float(value["x"])), bits(float(value["y"])))
    if unit is TimeUnit.KAFKA:
        return (Reason.ACCEPTED, 7, *found)
    scale = {TimeUnit.US: 1, TimeUnit.MS: 1_000, TimeUnit.S: 1_000_000}[unit]
    if isinstance(at, int) and abs(at * scale) < 2**63:
        return (Reason.ACCEPTED, at * scale, *found)
    if isinstance(at, float) and abs(at) <= 2**53 and abs(at * scale) <= 2**53:
        time_us = round(at * scale)
        if scale > 1 or time_us == at:
            return (Reason.ACCEPTED, time_us, *found)
    return (Reason.BAD_TIME, *found)


def shown(rows: SourceRows) -> list[tuple[Any, ...]]:
    """Return rows as `expected` says them."""
    found: list[tuple[Any, ...]] = []
    for row, name in enumerate(ids(rows)):
        reason = Reason(int(rows.reason[row]))
        if reason is Reason.UNDECODABLE:
            assert name == b""
            found.append((reason,))
            continue
        cells = (name, *(bits(value) for value in rows.values[row].tolist()))
        found.append((reason, *cells) if reason else (reason, int(rows.event_time_us[row]), *cells))
    return found


def of_two(schema: Any, unit: TimeUnit = TimeUnit.US, format: Format = Format.AVRO) -> Stream:
    return stream(format, unit, schema, ("x", "y"), object_id="who", event_time="at")
