"""A group: ordered streams that describe the same objects and never line up."""

from collections.abc import Iterator
from dataclasses import dataclass

from skyband.errors import DefinitionError, NotServedError
from skyband.model.duration import format_duration
from skyband.model.stream import Attribute, Identity, Stream, check_name

__all__ = ["Column", "Group"]

MAX_SHARDS = 4096
MAX_STREAMS = 64
MAX_TICKS = 1 << 24


@dataclass(frozen=True, slots=True)
class Column:
    """One attribute's place in a group: stream `stream` carries it as its value number `value`."""

    stream: int
    value: int
    attribute: Attribute


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Ordered streams with one retention, pane and number of shards.

    `retention_us` bounds the time windows of the group's queries, `retention_rows` its count windows (0: none are
    served). Sizes and slides of time windows are multiples of `pane_us`.
    """

    name: str
    streams: tuple[Stream, ...]
    retention_us: int
    pane_us: int = 1_000_000
    retention_rows: int = 0
    shards: int = 1
    max_drift_us: int = 60_000_000

    def __post_init__(self) -> None:
        check_name(self.name, "group")
        if not 1 <= len(self.streams) <= MAX_STREAMS:
            raise DefinitionError(f"group {self.name!r} must have 1 to {MAX_STREAMS} streams", field="streams")
        seen: dict[str, str] = {}
        for stream in self.streams:
            for name in {stream.name, *(a.name for a in stream.attributes)}:
                if name in seen:
                    raise DefinitionError(
                        f"group {self.name!r} uses the name {name!r} twice; names of streams and attributes are unique",
                        field="streams",
                    )
                seen[name] = stream.name
        topics: dict[str, str] = {}
        for stream in self.streams:
            other = topics.setdefault(stream.topic or stream.name, stream.name)
            if other != stream.name:
                raise NotServedError(
                    f"group {self.name!r}: streams {other!r} and {stream.name!r} read the same topic "
                    f"{stream.topic or stream.name!r}; make one object stream of them, or split the topic",
                    field="streams",
                )
        if any(s.identity is Identity.ROW for s in self.streams) and len(self.streams) > 1:
            raise NotServedError(
                f"group {self.name!r}: identity row needs a group with that one stream only", field="streams"
            )
        if self.pane_us < 1:
            raise DefinitionError("pane must be above 0", field="pane")
        if self.retention_us < self.pane_us or self.retention_us % self.pane_us:
            raise DefinitionError(
                f"retention {format_duration(self.retention_us)} is no multiple of the group's pane "
                f"{format_duration(self.pane_us)}",
                field="retention",
            )
        if not 1 <= self.shards <= MAX_SHARDS:
            raise DefinitionError(f"shards must be 1 to {MAX_SHARDS}", field="shards")
        if self.retention_us // self.pane_us > MAX_TICKS:
            raise DefinitionError(
                f"retention {format_duration(self.retention_us)} holds more than {MAX_TICKS:,} panes of "
                f"{format_duration(self.pane_us)}; use a larger pane",
                field="pane",
            )
        if not 0 <= self.retention_rows <= MAX_TICKS:
            raise DefinitionError(
                f"retention_rows must be 0 (no count windows) to {MAX_TICKS:,}", field="retention_rows"
            )

    @property
    def columns(self) -> tuple[Column, ...]:
        """All attributes of the group, in stream order."""
        return tuple(self._columns())

    def _columns(self) -> Iterator[Column]:
        for index, stream in enumerate(self.streams):
            for value, attribute in enumerate(stream.attributes):
                yield Column(index, value, attribute)

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """Names of all attributes, in the order of `columns`."""
        return tuple(column.attribute.name for column in self.columns)

    @property
    def width(self) -> int:
        """Number of values of the widest stream: the columns of an aligned batch's values."""
        return max(len(stream.attributes) for stream in self.streams)

    @property
    def is_row_identity(self) -> bool:
        """Whether each record is an object of its own."""
        return self.streams[0].identity is Identity.ROW

    def stream_index(self, name: str) -> int:
        """Return the index of the stream called `name`; raise DefinitionError if there is none."""
        for index, stream in enumerate(self.streams):
            if stream.name == name:
                return index
        known = ", ".join(stream.name for stream in self.streams)
        raise DefinitionError(f"{name!r} is not a stream of group {self.name!r}; streams are {known}")
