"""Which columns rows of a group have, and what is said when one of them, or a stream, is not there."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skyband.errors import InputError
from skyband.model.group import Group

__all__ = ["EVENT_TIME", "NO_STREAM", "OBJECT_ID", "STREAM", "Layout"]

STREAM = "stream"
OBJECT_ID = "object_id"
EVENT_TIME = "event_time"
VALUE = "value"

# The index of a stream that a row does not name.
NO_STREAM = -1


class Layout:
    """The columns of a group's rows: `stream`, `object_id`, `event_time`, and the values of each stream.

    An attribute stream has its one value in column `value`, an object stream one column for each attribute. `names`
    are all of them, `values_of[stream]` those of one stream's values, `required` those that every row needs: a group
    of one stream needs no column `stream`.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.values_of: tuple[tuple[str, ...], ...] = tuple(
            tuple(a.name for a in stream.attributes) if stream.is_object_stream else (VALUE,)
            for stream in group.streams
        )
        self.is_single = len(group.streams) == 1
        every = dict.fromkeys(name for names in self.values_of for name in names)
        self.names = tuple(dict.fromkeys((STREAM, OBJECT_ID, EVENT_TIME, *every)))
        shared = (name for name in every if all(name in names for names in self.values_of))
        self.required = (*(() if self.is_single else (STREAM,)), OBJECT_ID, EVENT_TIME, *shared)
        self._index = {stream.name: index for index, stream in enumerate(group.streams)}

    def stream_index(self, name: str | None) -> int | None:
        """Return the index of the stream called `name`, NO_STREAM if it is empty, None if the group has no such one."""
        if not name:
            return NO_STREAM
        index = self._index.get(name)
        return self._index.get(name.strip()) if index is None else index

    def unknown_stream(self, place: str, name: str) -> InputError:
        """Return the error of a row whose stream is none of the group's."""
        known = [stream.name for stream in self.group.streams]
        return InputError(
            f"{place}: {name!r} is not a stream of group {self.group.name!r}{_hint(name, known)}; "
            f"streams are {', '.join(known)}"
        )

    def missing(
        self, place: str, name: str, present: Iterable[str], *, noun: str, stream: int | None = None
    ) -> InputError:
        """Return the error of an input without the column (or field: `noun`) `name`, which `stream`, or all, need."""
        known = list(present)
        needs = "" if stream is None else f", which stream {self.group.streams[stream].name!r} needs"
        there = f"{noun}s are {', '.join(known)}" if known else f"there are no {noun}s"
        hint = _hint(name, known)
        if len(known) == 1 and (mark := next((mark for mark in ";\t|" if mark in known[0]), None)):
            hint = f" (cells are separated by commas here, not by {mark!r})"
        return InputError(f"{place}: there is no {noun} {name!r}{needs}{hint}; {there}")

    def check_columns(self, place: str, present: Sequence[str]) -> list[str]:
        """Return which of `names` are there; raise InputError if a required one is not, or one is there twice."""
        for name in self.required:
            if name not in present:
                raise self.missing(place, name, present, noun="column")
        for name in self.names:
            if present.count(name) > 1:
                raise InputError(f"{place}: there are {present.count(name)} columns {name!r}; keep one of them")
        return [name for name in self.names if name in present]

    def check_fields(self, place: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Raise InputError if none of `rows`, the first of an input, has a field that all of them or their stream need.

        One row without it is one bad row; all of them are a field of another name.
        """
        seen: dict[str, dict[str, None]] = {}
        for row in rows:
            name = row.get(STREAM)
            seen.setdefault(name if isinstance(name, str) else "", {}).update(dict.fromkeys(row))
        every = dict.fromkeys(field for fields in seen.values() for field in fields)
        if not every:
            return
        for name in self.required:
            if name not in every:
                raise self.missing(place, name, every, noun="field")
        for stream, names in enumerate(self.values_of):
            fields = seen.get(self.group.streams[stream].name)
            if fields is None:
                continue
            for name in names:
                # `value` is the column of all attribute streams.
                if name not in (every if name == VALUE else fields):
                    raise self.missing(place, name, fields, noun="field", stream=stream)


def _hint(name: str, known: Sequence[str]) -> str:
    near = [other for other in known if other.casefold() == name.casefold()]
    near = near or difflib.get_close_matches(name, known, 1)
    return f" (did you mean {near[0]!r}?)" if near else ""
