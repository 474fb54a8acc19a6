"""Where a part of a text value stands in the YAML that it was written in: plain, quoted, or in a block."""

import yaml

__all__ = ["token_span"]

_ESCAPE_DIGITS = {"x": 2, "u": 4, "U": 8}


def token_span(text: str, node: yaml.ScalarNode, column: int, length: int) -> tuple[int, int]:
    """Return the [start, stop) in `text` of the characters [column, column + length) of the value of `node`.

    Value and source differ in quotes, escapes, folded lines and indentation, but not in the order of what is no blank:
    walking both at once finds the place. A column at the end of the value is the place just behind it.
    """
    places = _character_places(text, node)
    if column >= len(places):
        start = places[-1][1] if places else node.start_mark.index
        return start, start + 1
    last = min(column + max(1, length), len(places)) - 1
    return places[column][0], places[last][1]


def _character_places(text: str, node: yaml.ScalarNode) -> list[tuple[int, int]]:
    """Return [start, stop) in `text` for each character of the value; blanks stand where the next character does."""
    at, stop = _first(text, node), node.end_mark.index
    places: list[tuple[int, int]] = []
    for character in node.value:
        start, next_at = _next(text, at, node.style)
        # A blank may have been folded from a line break and its indentation.
        while character.strip() and start < stop and text[start].isspace():
            start, next_at = _next(text, next_at, node.style)
        if character.isspace() and start < stop and not text[start].isspace() and text[start] != "\\":
            places.append((start, start))
            continue
        places.append((min(start, stop), min(next_at, stop)))
        at = next_at
    return places


def _first(text: str, node: yaml.ScalarNode) -> int:
    start = int(node.start_mark.index)
    if node.style in ("|", ">"):
        return text.find("\n", start) + 1
    return start + 1 if node.style in ("'", '"') else start


def _next(text: str, at: int, style: str | None) -> tuple[int, int]:
    """Return [start, stop) of the next character as it is written at `at`."""
    if style == "'" and text[at : at + 2] == "''":
        return at, at + 2
    if style == '"' and text[at : at + 1] == "\\":
        escape = text[at + 1 : at + 2]
        if escape in ("\n", "\r"):
            # A line continued: the value knows nothing of it.
            return _next(text, at + 2, style)
        return at, at + 2 + _ESCAPE_DIGITS.get(escape, 0)
    return at, at + 1
