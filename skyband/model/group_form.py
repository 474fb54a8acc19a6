"""Groups as plain documents: the keys under ``group:`` of a definitions file, read and written."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from skyband.errors import DefinitionError
from skyband.model.document import duration, items, read_mapping, text, under, whole
from skyband.model.duration import format_duration
from skyband.model.group import Group
from skyband.model.query import Query
from skyband.model.stream import Stream
from skyband.model.stream_form import dump_stream, read_stream

__all__ = ["GroupForm", "dump_group", "read_group", "read_group_form"]

DEFAULT_PANE_US = 1_000_000


@dataclass(frozen=True, slots=True)
class GroupForm:
    """A group as written at `path` of a document: its retention may still depend on the queries beside it."""

    found: dict[str, Any]
    path: str

    def complete(self, queries: Iterable[Query] = ()) -> Group:
        """Return the group; what it leaves out comes from `queries`.

        Without ``retention`` it keeps the longest of their windows, rounded up to the pane, and without
        ``retention_rows`` the longest of their counts. Raises DefinitionError.
        """
        found = dict(self.found)
        windows = [query.window for query in queries]
        pane = found.setdefault("pane_us", DEFAULT_PANE_US)
        found.setdefault("retention_rows", max((w.size for w in windows if w.in_rows), default=0))
        if "retention_us" not in found:
            if not windows:
                raise DefinitionError(
                    f"group {found['name']!r} has no retention, and no query whose window tells it; add retention: …",
                    field=self.path,
                )
            longest = max((w.size for w in windows if not w.in_rows), default=1)
            found["retention_us"] = -(-longest // pane) * pane
        self._check_names()
        try:
            return Group(**found)
        except DefinitionError as error:
            raise under(error, self.path) from None

    def _check_names(self) -> None:
        """Find a name used twice where it is used, which the group itself cannot tell."""
        seen: set[str] = set()
        for index, stream in enumerate(self.found["streams"]):
            for place, name in _names(stream):
                if name in seen:
                    raise DefinitionError(
                        f"group {self.found['name']!r} uses the name {name!r} twice; "
                        "names of streams and attributes are unique",
                        field=f"{self.path}.streams[{index}].{place}",
                    )
                seen.add(name)


def read_group_form(value: object, path: str = "") -> GroupForm:
    """Return the group that a document at `path` describes, as far as it does. Raises DefinitionError."""
    name = value.get("name") if isinstance(value, Mapping) else None
    what = f"group {name!r}" if isinstance(name, str) else "group"
    found = read_mapping(value, path, what, _GROUP, required=("name", "streams"))
    return GroupForm({_FIELDS.get(key, key): item for key, item in found.items()}, path)


def read_group(value: object, path: str = "") -> Group:
    """Return the group that a complete document at `path` describes. Raises DefinitionError."""
    return read_group_form(value, path).complete()


def dump_group(group: Group) -> dict[str, Any]:
    """Return the document, every key written, that `read_group` reads back as `group`."""
    return {
        "name": group.name,
        "retention": format_duration(group.retention_us),
        "retention_rows": group.retention_rows,
        "pane": format_duration(group.pane_us),
        "shards": group.shards,
        "max_drift": format_duration(group.max_drift_us),
        "streams": [dump_stream(stream) for stream in group.streams],
    }


def _read_pane(value: object, path: str) -> int:
    pane = duration(value, path)
    if pane < 1:
        raise DefinitionError("pane must be above 0", field=path)
    return pane


def _names(stream: Stream) -> Iterable[tuple[str, str]]:
    yield "name", stream.name
    if stream.is_object_stream:
        # An attribute may be named as its own stream.
        yield from ((f"attributes[{i}].name", a.name) for i, a in enumerate(stream.attributes) if a.name != stream.name)


_FIELDS = {"retention": "retention_us", "pane": "pane_us", "max_drift": "max_drift_us"}
_GROUP = {
    "name": text,
    "retention": duration,
    "retention_rows": whole,
    "pane": _read_pane,
    "shards": whole,
    "max_drift": duration,
    "streams": items(read_stream),
}
