"""Options of commands as the keyword arguments of the client, and what is said when one of them is wrong."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skyband.errors import DefinitionError

if TYPE_CHECKING:
    from skyband.client.options import Start

__all__ = ["attributes_of", "given", "require_of", "schema_of", "start_of", "typed", "window_of"]


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None and value != []}


@contextmanager
def typed(options: Mapping[str, object], aliases: Mapping[str, str] | None = None) -> Iterator[None]:
    """Let an error about a field name the option that said it, as it was typed: ``--k 0: k must be at least 1``.

    `options` are what was typed, by a part of the field's path; an option is called as that part, or as `aliases` say.
    """
    try:
        yield
    except DefinitionError as error:
        parts = (error.field or "").replace("[", ".").split(".")
        name = next((part for part in reversed(parts) if options.get(part) not in (None, [])), None)
        if name is not None and not error.place:
            value = options[name]
            words = value if isinstance(value, list) else [value]
            option = (aliases or {}).get(name, name.replace("_", "-"))
            error.place = " ".join(f"--{option} {word}" for word in words)
            # What the option says is shown with its name; a mark under it helps only in a score.
            if name != "score":
                error.source_text = None
        raise


def start_of(begin: str | None) -> "Start":
    """Return where to begin: ``earliest`` (None), ``latest`` or a time, ISO 8601; one without an offset is UTC."""
    if begin is None or begin == "earliest":
        return "earliest"
    if begin == "latest":
        return "latest"
    try:
        moment = datetime.fromisoformat(begin)
    except ValueError:
        raise DefinitionError(
            "is none of earliest, latest and a time such as 2026-07-01T12:00:00+02:00", place=f"--begin {begin}"
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def window_of(text: str) -> str | int:
    """Return the size or slide of a window: a whole number counts rows, all else is a duration."""
    plain = text.replace(",", "").replace("_", "")
    return int(plain) if plain.isascii() and plain.isdigit() else text


def require_of(text: str | None) -> str | list[str] | None:
    """Return what ``any``, ``all`` or ``temperature,vibration`` asks for."""
    if text is None or text in ("any", "all"):
        return text
    return [name.strip() for name in text.split(",")]


def schema_of(text: str | None) -> str | None:
    """Return a schema: the text itself, or with ``@FILE`` what the file holds. Raises OSError."""
    return Path(text[1:]).read_text(encoding="utf-8") if text is not None and text.startswith("@") else text


def attributes_of(texts: list[str]) -> list[dict[str, Any]]:
    """Return the attributes of an object stream: ``price``, or with bounds ``price:0:100`` (either may be empty)."""
    return [_attribute(text) for text in texts]


def _attribute(text: str) -> dict[str, Any]:
    name, *bounds = text.split(":")
    try:
        if len(bounds) not in (0, 2):
            raise ValueError
        found = {key: float(bound) for key, bound in zip(("lo", "hi"), bounds, strict=False) if bound}
    except ValueError:
        raise DefinitionError("must be NAME or NAME:LO:HI, such as price:0:100", place=f"--attribute {text}") from None
    return {"name": name, **found}
