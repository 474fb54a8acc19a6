"""What programs write, as lines for a person: ``14:02:03  engine    shard restored  group=flights shard=0``."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

__all__ = ["LogTail", "as_line", "line_of"]

_NAME_WIDTH = 8
_SHOWN = {"info", "warning", "error", "critical"}
_NOT_REPEATED = {"event", "level", "service", "timestamp", "exception"}
_MOST_BYTES = 1 << 20


def as_line(now: datetime, name: str, text: str, level: str = "info") -> str:
    """Return one line of the stream of events."""
    mark = "" if level == "info" else f"{level}: "
    return f"{now:%H:%M:%S}  {name:<{_NAME_WIDTH}}  {mark}{text}"


def line_of(name: str, written: str) -> str | None:
    """Return the line for one that program `name` wrote; None for what is no event, or one of no interest here."""
    try:
        event = json.loads(written)
    except ValueError:
        return None
    if not isinstance(event, dict) or "event" not in event or event.get("level", "info") not in _SHOWN:
        return None
    fields = "  ".join(f"{key}={_value(value)}" for key, value in event.items() if key not in _NOT_REPEATED)
    text = f"{event['event']}  {fields}" if fields else str(event["event"])
    return as_line(_time(event.get("timestamp")), name, text, event.get("level", "info"))


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}'" if " " in text and isinstance(value, str) else text


def _time(text: object) -> datetime:
    try:
        return datetime.fromisoformat(str(text)).astimezone()
    except ValueError:
        return datetime.now().astimezone()


class LogTail:
    """Reads what is added to a file from now on, in whole lines; `last` is the newest that is not blank."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = path.stat().st_size
        self._rest = b""
        self.last = ""

    def read(self) -> list[str]:
        """Return the lines that were added, at most about 1 MB at a time."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            added = file.read(_MOST_BYTES)
        self._offset += len(added)
        *whole, self._rest = (self._rest + added).split(b"\n")
        lines = [line.decode(errors="replace") for line in whole if line.strip()]
        if lines:
            self.last = lines[-1].strip()
        return lines
