"""Reads the golden cases, independently of the package's own readers."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from skyband.model.duration import parse_duration
from skyband.model.group import Group
from skyband.model.query import Order, Query, Window
from skyband.model.stream import Aggregate, Attribute, Identity, Late, OutOfRange, Stream
from tests.oracle import Partitions, Row

FOLDER = Path(__file__).parent / "golden"


class Case(NamedTuple):
    """One golden case: what is asked, the input of each (stream index, source partition), and the answer."""

    group: Group
    queries: tuple[Query, ...]
    partitions: Partitions
    expected: list[dict[str, Any]]


def names() -> list[str]:
    """Return the names of all cases."""
    return sorted(path.parent.name for path in FOLDER.glob("*/definitions.yaml"))


def read(name: str) -> Case:
    """Return the case in folder `name`."""
    folder = FOLDER / name
    document = yaml.safe_load((folder / "definitions.yaml").read_text(encoding="utf-8"))
    group = _group(document["group"])
    queries = tuple(_query(query) for query in document["queries"])
    return Case(group, queries, _partitions(folder, group), _lines(folder / "expected.jsonl"))


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _partitions(folder: Path, group: Group) -> Partitions:
    partitions: dict[tuple[int, int], list[Row]] = {}
    for partition, path in enumerate(sorted(folder.glob("input*.jsonl"))):
        for line in _lines(path):
            index = group.stream_index(line["stream"])
            stream = group.streams[index]
            fields = [attribute.name for attribute in stream.attributes] if stream.is_object_stream else ["value"]
            values = tuple(float(line[field]) for field in fields)
            partitions.setdefault((index, partition), []).append(Row(line["object_id"], line["event_time"], values))
    return partitions


def _group(form: dict[str, Any]) -> Group:
    return Group(
        name=form["name"],
        streams=tuple(_stream(stream) for stream in form["streams"]),
        retention_us=parse_duration(form["retention"]),
        pane_us=parse_duration(form.get("pane", "1s")),
        retention_rows=form.get("retention_rows", 0),
    )


def _stream(form: dict[str, Any]) -> Stream:
    many = "attributes" in form
    return Stream(
        name=form["name"],
        attributes=tuple(_attribute(attribute) for attribute in form.get("attributes", [form])),
        is_object_stream=many,
        identity=Identity(form.get("identity", "object")),
        aggregate=Aggregate(form.get("aggregate", "latest" if many else "best")),
        max_delay_us=parse_duration(form.get("max_delay", "0s")),
        late=Late(form.get("late", "apply")),
    )


def _attribute(form: dict[str, Any]) -> Attribute:
    numbers = {name: float(form[name]) for name in ("lo", "hi", "missing") if name in form}
    return Attribute(name=form["name"], out_of_range=OutOfRange(form.get("out_of_range", "reject")), **numbers)


def _query(form: dict[str, Any]) -> Query:
    window, require = form["window"], form.get("require", "any")
    return Query(
        name=form["name"],
        k=form["k"],
        score=str(form["score"]),
        window=Window(window["count"], window["slide"], in_rows=True)
        if "count" in window
        else Window(parse_duration(window["size"]), parse_duration(window["slide"])),
        order=Order(form.get("order", "highest")),
        require=tuple(require) if isinstance(require, list) else (),
        require_all=require == "all",
    )
