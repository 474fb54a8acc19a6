"""What a check has found."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["PARTS", "Finding", "Level", "Part"]


class Level(StrEnum):
    """How bad it is: as it should be; worth knowing; to be mended."""

    OK = "ok"
    NOTE = "note"
    WRONG = "wrong"


class Part(StrEnum):
    """What a finding is about."""

    KAFKA = "kafka"
    ALIGN = "align"
    ENGINE = "engine"
    FANOUT = "fanout"
    CONTROL = "control"


# Those that can be asked for; kafka is checked in any case.
PARTS = (Part.ALIGN, Part.ENGINE, Part.FANOUT, Part.CONTROL)


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: about what, how bad it is, in words, and what to do about it."""

    part: Part
    level: Level
    text: str
    do: str = ""
