"""Findings as lines for a person, and as JSON Lines."""

import json

from rich.text import Text

from services.doctor.finding import Finding, Level
from skyband.cli.figures import count

__all__ = ["as_json", "line", "summary"]

_MARKS = {Level.OK: ("✓", "green"), Level.NOTE: ("·", "yellow"), Level.WRONG: ("✗", "red")}


def as_json(finding: Finding) -> str:
    """Return a finding as a line of JSON."""
    document = {"part": finding.part, "level": finding.level, "text": finding.text, "do": finding.do or None}
    return json.dumps(document, ensure_ascii=False)


def line(finding: Finding) -> Text:
    """Return a finding as one line, and a second one if there is something to do."""
    text = Text.assemble(_MARKS[finding.level], f" {finding.part:<8} {finding.text}")
    if finding.do:
        text.append(f"\n             do: {finding.do}", "dim")
    return text


def summary(levels: list[Level]) -> str:
    """Return how it stands, in a line."""
    wrong = levels.count(Level.WRONG)
    if not wrong:
        return f"all is well ({count(len(levels), 'finding')})"
    return f"{count(wrong, 'thing')} {'is' if wrong == 1 else 'are'} wrong"
