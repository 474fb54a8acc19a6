"""A document as lines for a person."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["record"]


def record(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and text of each key that says something; what lies deeper is called ``idle.after``."""
    for key, value in document.items():
        if isinstance(value, Mapping):
            for name, text in record(value):
                yield f"{key.replace('_', ' ')}.{name}", text
        elif value not in (None, "", []):
            yield key.replace("_", " "), _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        return ", ".join(json.dumps(item) if isinstance(item, Mapping) else _text(item) for item in value)
    return str(value)
