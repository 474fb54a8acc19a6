"""Everything that Skyband raises on purpose.

::

    SkybandError
    ├── DefinitionError        a definition or an argument is wrong; points at the place
    │   └── NotServedError     a legal question that the named algorithm or group cannot serve; says why
    ├── InputError             an input cannot be read at all (file, line or row, field)
    ├── NotFoundError          no stream, group or query of that name
    ├── AlreadyExistsError     the name is taken
    ├── ConflictError          the resource changed meanwhile (etag), or its state forbids the change
    └── LogError               the record log cannot do what was asked
        ├── CoverageGapError   source offsets are missing; the shard stops
        ├── CapacityError      a bounded buffer would grow past its cap
        └── TakenOverError     another producer has the transactional id now

A message is one sentence: what is wrong with which field, and what to do.
"""

__all__ = [
    "AlreadyExistsError",
    "CapacityError",
    "ConflictError",
    "CoverageGapError",
    "DefinitionError",
    "InputError",
    "LogError",
    "NotFoundError",
    "NotServedError",
    "SkybandError",
    "TakenOverError",
]


class SkybandError(Exception):
    """Base of all errors that Skyband raises on purpose."""


class DefinitionError(SkybandError):
    """A definition or an argument is wrong.

    `field` is the path of the field (``queries[0].window.slide``), `source_text` the text that `column` (0-based,
    in characters) and `length` point into, `place` a ``file:line:column`` prefix once a reader knows it.
    """

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        source_text: str | None = None,
        column: int | None = None,
        length: int = 1,
        place: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.source_text = source_text
        self.column = column
        self.length = length
        self.place = place

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message

    def pointer(self) -> str | None:
        """Return `source_text` with a line of carets under the wrong part, or None if no place is known."""
        if self.source_text is None or self.column is None:
            return None
        return f"{self.source_text}\n{' ' * self.column}{'^' * max(1, self.length)}"


class NotServedError(DefinitionError):
    """A legal question that the named algorithm, or this group, cannot serve; the message says why."""


class InputError(SkybandError):
    """An input cannot be read at all; the message names file, line or row, and field."""


class NotFoundError(SkybandError):
    """No resource of that name exists."""


class AlreadyExistsError(SkybandError):
    """The name is taken by another resource."""


class ConflictError(SkybandError):
    """The resource changed meanwhile, or its state forbids the change."""


class LogError(SkybandError):
    """The record log cannot do what was asked."""


class CoverageGapError(LogError):
    """Source offsets are missing from an aligned log; the shard stops rather than answer from less."""

    def __init__(self, message: str, *, stream: str, partition: int, expected: int, found: int) -> None:
        super().__init__(message)
        self.stream = stream
        self.partition = partition
        self.expected = expected
        self.found = found


class CapacityError(LogError):
    """A bounded buffer would grow past its cap."""


class TakenOverError(LogError):
    """Another producer has taken over the transactional id; whoever had it must not take it back."""
