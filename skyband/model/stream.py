"""Streams: where attributes of objects come from, and how several observations of one combine.

An *attribute stream* carries one attribute, named like the stream; an *object stream* carries several in each record.
"""

import math
import re
from dataclasses import dataclass, field
from enum import StrEnum

from skyband.errors import DefinitionError, NotServedError
from skyband.model.duration import MAX_TIME_US

__all__ = [
    "Aggregate",
    "Attribute",
    "Fields",
    "Format",
    "Identity",
    "IdleThen",
    "Late",
    "OutOfRange",
    "Stream",
    "TimeUnit",
    "check_name",
]

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,62}")
_ATTRIBUTE = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,62}")


class Aggregate(StrEnum):
    """How several valid observations of one object in one stream combine."""

    BEST = "best"
    LATEST = "latest"
    FIRST = "first"
    SUM = "sum"
    COUNT = "count"
    MAX = "max"
    MIN = "min"


class OutOfRange(StrEnum):
    """What happens to a value outside [lo, hi]."""

    REJECT = "reject"
    CLAMP = "clamp"


class Late(StrEnum):
    """What happens to a row whose release time is after its event time."""

    APPLY = "apply"
    DROP = "drop"


class IdleThen(StrEnum):
    """Whether an idle partition lets the frontier pass (flush) or holds it."""

    FLUSH = "flush"
    HOLD = "hold"


class Identity(StrEnum):
    """What an object is: everything under one id, or each record by itself."""

    OBJECT = "object"
    ROW = "row"


class Format(StrEnum):
    """How a source topic's records are encoded."""

    AVRO = "avro"
    CONFLUENT_AVRO = "confluent-avro"
    JSON = "json"


class TimeUnit(StrEnum):
    """Unit of a source's event time field."""

    US = "us"
    MS = "ms"
    S = "s"
    ISO = "iso"
    KAFKA = "kafka"


def check_name(name: object, what: str, *, attribute: bool = False) -> str:
    """Return `name` if it is a legal name of a `what`, else raise DefinitionError."""
    pattern = _ATTRIBUTE if attribute else _NAME
    if isinstance(name, str) and pattern.fullmatch(name):
        return name
    rule = "letters, digits and _" if attribute else "letters, digits, _ and -"
    raise DefinitionError(f"{what} name {name!r} must be 1 to 63 {rule}, beginning with a letter", field="name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One number of an object. `missing` None means the worst value for the query at hand."""

    name: str
    lo: float = 0.0
    hi: float = math.inf
    out_of_range: OutOfRange = OutOfRange.REJECT
    missing: float | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "attribute", attribute=True)
        if math.isnan(self.lo) or math.isnan(self.hi) or self.lo >= self.hi:
            raise DefinitionError(
                f"attribute {self.name!r} has lo {self.lo:g}, which is not below hi {self.hi:g}", field="lo"
            )
        if self.lo == math.inf or self.hi == -math.inf:
            raise DefinitionError(f"attribute {self.name!r} has an empty range; give lo and hi as numbers", field="lo")
        if self.missing is not None and not math.isfinite(self.missing):
            raise DefinitionError(
                f"attribute {self.name!r} has missing {self.missing}; use a finite number or worst", field="missing"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """Names of the fields of a source record, and the unit of its event time."""

    object_id: str = "object_id"
    event_time: str = "event_time"
    value: str = "value"
    time_unit: TimeUnit = TimeUnit.US


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One source of a group: what it carries and the promises its producer makes.

    `repeat_after_us` None: no promise; MAX_TIME_US: an object comes at most once, ever. All times in microseconds.
    """

    name: str
    attributes: tuple[Attribute, ...]
    is_object_stream: bool = False
    identity: Identity = Identity.OBJECT
    aggregate: Aggregate = Aggregate.BEST
    repeat_after_us: int | None = None
    max_delay_us: int = 0
    late: Late = Late.APPLY
    idle_after_us: int = 10_000_000
    idle_then: IdleThen = IdleThen.FLUSH
    max_ahead_us: int = 300_000_000
    topic: str = ""
    format: Format = Format.AVRO
    schema: str = ""
    fields: Fields = field(default_factory=Fields)

    def __post_init__(self) -> None:
        check_name(self.name, "stream", attribute=not self.is_object_stream)
        if not self.attributes:
            raise DefinitionError(
                f"object stream {self.name!r} has no attributes; list at least one", field="attributes"
            )
        if not self.is_object_stream and (len(self.attributes) != 1 or self.attributes[0].name != self.name):
            raise DefinitionError(
                f"attribute stream {self.name!r} must carry one attribute of its own name", field="attributes"
            )
        names = [attribute.name for attribute in self.attributes]
        if len(set(names)) != len(names):
            raise DefinitionError(f"stream {self.name!r} names an attribute twice", field="attributes")
        if self.identity is Identity.ROW and not self.is_object_stream:
            raise NotServedError(
                f"stream {self.name!r} has identity row, which needs an object stream", field="identity"
            )
        for name in ("max_delay_us", "idle_after_us", "max_ahead_us"):
            if not 0 <= getattr(self, name) <= MAX_TIME_US:
                raise DefinitionError(f"stream {self.name!r}: {name[:-3]} must not be negative", field=name[:-3])
        if self.identity is Identity.ROW:
            # A record that is an object of its own is never combined with another: one spelling for all.
            object.__setattr__(self, "aggregate", Aggregate.LATEST)
        if self.repeat_after_us is not None and self.repeat_after_us <= 0:
            raise DefinitionError(f"stream {self.name!r}: repeat_after must be above 0 or never", field="repeat_after")
