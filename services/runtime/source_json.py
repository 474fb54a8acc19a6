"""JSON records of users' topics, one object a message.

Arrow reads a chunk at once if each record surely is one object like the first. Where it fails, or might read anything
in another way, the records are read one by one, and that decides: what a record means never depends on its neighbours.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json

from services.runtime.payloads import Payloads
from services.runtime.source_cells import Cells
from services.runtime.source_columns import Columns, Roles, source_rows
from services.runtime.source_times import real_times, text_times, whole_times
from skyband.files.text_columns import id_arena
from skyband.model.source_rows import Reason, SourceRows

__all__ = ["JsonDecoder"]

_decode = json.JSONDecoder().decode

# Below, what arrow costs per call is more than it saves.
_FEWEST_AT_ONCE = 32
# A record that nests deeper, or is longer, may be beyond limits of Python's reader which arrow does not have.
_MOST_BRACKETS = 200
_LONGEST_BYTES = 4_000
_ID_TYPES = {str: pa.string(), int: pa.int64()}
_TIME_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64()}


class JsonDecoder:
    """Decodes JSON objects. Fields of no role are not looked at, one that is not there is an empty one."""

    def __init__(self, roles: Roles) -> None:
        self._roles = roles
        self._cells = Cells(roles)

    def decode(
        self,
        offsets: npt.NDArray[np.int64],
        timestamps_us: npt.NDArray[np.int64],
        values: Payloads,
    ) -> SourceRows:
        """Return the records of a chunk as rows. Cost: about 1.5 us a record at once, 4 to 8 us one by one."""
        columns = self._at_once(values) if len(values) >= _FEWEST_AT_ONCE else None
        if columns is None:
            columns = self._cells.columns([_read(value)[0] for value in values])
        # To Python -0 is a whole number, which has no sign; to arrow it is a float. No zero has a sign here.
        np.add(columns.values, 0.0, out=columns.values)

        def explain(index: int) -> str:
            record, problem = _read(values[index])
            return problem if record is None else self._cells.explain(record)

        return source_rows(self._roles, offsets, timestamps_us, values, columns, explain)

    def _at_once(self, values: Payloads) -> Columns | None:
        """Return the columns of a chunk, or None if it has to be read one by one."""
        schema = self._schema(values[0])
        if schema is None:
            return None
        data = _joined(values)
        if data is None:
            return None
        try:
            table = pa.json.read_json(
                pa.BufferReader(data),
                pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
                pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            )
            if table.num_rows != len(values) or any(column.num_chunks != 1 for column in table.columns):
                return None
            return self._columns({name: table.column(name).chunk(0) for name in schema.names})
        except pa.ArrowInvalid:
            return None

    def _schema(self, value: bytes | None) -> pa.Schema | None:
        """Return the types of a chunk whose records are like this one, or None if they are more than arrow is given."""
        roles = self._roles
        record, _ = _read(value)
        if record is None or len(set(roles.names)) != len(roles.names):
            return None
        types = {roles.object_id: _ID_TYPES.get(type(record.get(roles.object_id)))}
        if roles.event_time is not None:
            types[roles.event_time] = _TIME_TYPES.get(type(record.get(roles.event_time)))
        types |= dict.fromkeys(roles.values, pa.float64())
        return None if None in types.values() else pa.schema(list(types.items()))

    def _columns(self, columns: Mapping[str, pa.Array]) -> Columns | None:
        roles = self._roles
        count = len(columns[roles.object_id])
        found = Columns.refused(count, len(roles.values), Reason.ACCEPTED)
        time_us = found.time_us
        if roles.event_time is not None:
            times = columns[roles.event_time]
            none = np.asarray(times.is_null())
            time_us, bad = _times(times, roles.scale)
            if pa.types.is_floating(times.type) and (bad & ~none).any():
                # A large whole number may be right, and has been read as a float.
                return None
            found.reason[bad | none] = Reason.BAD_TIME
        for index, name in enumerate(roles.values):
            column = columns[name]
            if column.null_count:
                found.reason[np.asarray(column.is_null())] = Reason.UNDECODABLE
            found.values[:, index] = np.asarray(column.fill_null(np.nan))
        id_bytes, id_ends = id_arena(columns[roles.object_id])
        return Columns(time_us, id_bytes, id_ends, found.values, found.reason)


def _times(column: pa.Array, scale: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    if pa.types.is_string(column.type):
        column.validate(full=True)
        return text_times(column.fill_null(""), scale)
    if pa.types.is_floating(column.type):
        return real_times(np.asarray(column.fill_null(np.nan)), scale)
    return whole_times(np.asarray(column.fill_null(0)), scale)


def _joined(values: Payloads) -> bytes | None:
    """Return records as lines, or None if one is not surely a line, or arrow and Python might read it differently.

    Each begins with a brace, ends with one and has no end of line within: so when arrow finds as many objects as there
    are records, each record is one.
    """
    present = [value or b"" for value in values]
    data = b"\n".join(present) + b"\n"
    ends = np.cumsum(np.fromiter(map(len, present), np.int64, len(present)) + 1)
    starts = np.concatenate(([0], ends[:-1]))
    codes = np.frombuffer(data, np.uint8)
    are_objects = (codes[starts] == ord("{")).all() and (codes[ends - 2] == ord("}")).all()
    if not are_objects or data.count(b"\n") != len(present) or (ends - starts).max() > _LONGEST_BYTES:
        return None
    if b"[" in data or data.count(b"{") != len(present):
        brackets = (codes == ord("[")) | (codes == ord("{"))
        if np.add.reduceat(brackets, starts, dtype=np.int64).max() > _MOST_BRACKETS:
            return None
    try:
        # Arrow does not look at bytes that it does not need.
        data.decode()
    except UnicodeDecodeError:
        return None
    return data


def _read(value: bytes | None) -> tuple[Mapping[str, Any] | None, str]:
    """Return the object that a record is, or None and why it is none."""
    try:
        record = _decode((value or b"").decode())
    except UnicodeDecodeError:
        return None, "record is not UTF-8"
    except json.JSONDecodeError as error:
        problem = error.msg.removesuffix(" at").removesuffix(" starting")
        return None, f"record is not JSON (character {error.pos + 1}: {problem[0].lower()}{problem[1:]})"
    except RecursionError:
        return None, "record cannot be decoded: it nests too deeply"
    except ValueError as error:
        return None, f"record cannot be decoded: {error}"
    return (record, "") if isinstance(record, dict) else (None, "record is JSON, but no object")
