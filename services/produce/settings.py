"""What `produce` is told on its command line."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from services.produce.generate import Manner, add_manner_options, read_manner

__all__ = ["ProduceSettings", "read_settings"]

DEFAULT_RATE = 1_000.0


@dataclass(frozen=True, slots=True)
class ProduceSettings:
    """Settings of one run.

    The group comes from the file `definitions`, or by name from control. `rate`: rows a second, `speed`: how much
    faster than time event time passes; 0: no limit. `generate`: `objects` objects make `rows` rows (None: no end) from
    `begin` on (None: now), as `manner` says. `create_topics`: partitions of topics that are missing, 0: none is made.
    """

    definitions: Path | None = None
    group: str | None = None
    input: tuple[Path, ...] = ()
    generate: bool = False
    rate: float | None = None
    speed: float | None = None
    create_topics: int = 0
    rows: int | None = None
    objects: int = 1_000
    seed: int = 0
    begin: datetime | None = None
    manner: Manner = field(default_factory=Manner)
    output: str = "auto"


def read_settings(arguments: Sequence[str]) -> ProduceSettings:
    """Return the settings; exits with 2 and a usage line if the arguments are wrong."""
    parser = argparse.ArgumentParser(prog="python -m services.produce", description="Write rows to source topics.")
    add = parser.add_argument
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--definitions", type=Path, help="file of the group")
    what.add_argument("--group", help="name of a group that control knows")
    add("--input", type=Path, action="append", default=[], help="file of rows; repeat it")
    add("--generate", action="store_true", help="make rows up")
    add("--rate", type=_not_negative, help="rows a second; 0: no limit")
    add("--speed", type=_not_negative, help="of event time against time; 0: no limit")
    add("--create-topics", type=_whole, default=0, help="make topics that are missing, with so many partitions")
    add("--rows", type=_whole, help="end after so many rows")
    add("--objects", type=_whole, default=1_000, help="objects that --generate makes up (%(default)s)")
    add("--seed", type=int, default=0, help="of --generate (%(default)s)")
    add("--begin", type=_time, help="event time of the first generated row (now)")
    add("-o", "--output", choices=("auto", "table", "json"), default="auto", help="form of the summary")
    add_manner_options(parser)
    found = parser.parse_args(arguments)
    manner = read_manner(found)
    if found.generate == bool(found.input):
        parser.error("name files with --input, or let rows be made up with --generate: one of both")
    return ProduceSettings(**{**vars(found), "input": tuple(found.input), "manner": manner})


def _not_negative(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} must be at least 0")
    return number


def _whole(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} must be at least 1")
    return number


def _time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no time; write for example 2026-07-01T12:00:00Z") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
