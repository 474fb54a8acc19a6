"""Dead letters as lines for a person, and as JSON Lines."""

import base64
import json
from datetime import UTC, datetime, timedelta

from rich.text import Text

from services.dead_letters.reader import Letter
from skyband.cli.figures import bytes_of

__all__ = ["as_json", "document", "lines", "preview"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN = 80


def document(letter: Letter) -> dict[str, object]:
    """Return a letter as plain data; its bytes as text if they are, else in base64."""
    found = letter.letter
    held: dict[str, object]
    try:
        held = {"value": found.raw.decode("utf-8")}
    except UnicodeDecodeError:
        held = {"value_base64": base64.b64encode(found.raw).decode("ascii")}
    return {
        "time": _moment(letter.time_us).isoformat(),
        "stream": found.stream,
        "topic": found.topic,
        "partition": found.partition,
        "offset": found.offset,
        "reason": found.reason.label,
        "error": found.error,
        **held,
    }


def as_json(letter: Letter) -> str:
    """Return a letter as a line of JSON."""
    return json.dumps(document(letter), ensure_ascii=False)


def lines(letter: Letter) -> Text:
    """Return a letter as two lines: when, where and why; and what it holds."""
    found = letter.letter
    where = f"{found.topic}/{found.partition} at {found.offset:,}"
    why = f": {found.error}" if found.error else ""
    return Text.assemble(
        (_moment(letter.time_us).astimezone().isoformat(sep=" ", timespec="milliseconds"), "dim"),
        "  ",
        (found.stream, "bold"),
        f"  {where}  ",
        (found.reason.label, "yellow"),
        f"{why}\n    ",
        (f"{bytes_of(len(found.raw))}  {preview(found.raw)}", "dim"),
    )


def preview(raw: bytes, most: int = _SHOWN) -> str:
    """Return what bytes hold, on one line and shortened: text if it is some, else hexadecimal digits."""
    if not raw:
        return "(no value)"
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and text:
        return text if len(text) <= most else f"{text[: most - 1]}…"
    shown = raw[: most // 3].hex(" ")
    return shown if 3 * len(raw) <= most else f"{shown} …"


def _moment(time_us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=time_us)
