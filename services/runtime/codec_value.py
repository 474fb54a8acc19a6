"""One kind of value as an Avro record and back."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

__all__ = ["AvroRecord", "ValueCodec", "plain"]

AvroRecord = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ValueCodec:
    """How values of the class `kind` are written as records of the schema's record `name`, and read back.

    `read` gets what fastavro makes of a record and raises whatever it likes if that makes no sense.
    """

    name: str
    kind: type
    write: Callable[[Any], AvroRecord]
    read: Callable[[AvroRecord], object]


def plain(kind: type) -> ValueCodec:
    """Return the codec of a dataclass whose fields are the record's, with values that Avro has itself."""
    names = [field.name for field in fields(kind)]
    values = attrgetter(*names)

    def write(value: Any) -> AvroRecord:
        return dict(zip(names, values(value), strict=True))

    return ValueCodec(kind.__name__, kind, write, lambda record: kind(**record))
