"""What `dead_letters` is told on its command line."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["LettersSettings", "read_settings"]


@dataclass(frozen=True, slots=True)
class LettersSettings:
    """Settings of one run: the newest `number` letters of `stream` (None: any), or all; `follow`: and what comes."""

    number: int = 10
    stream: str | None = None
    from_beginning: bool = False
    follow: bool = False
    output: str = "auto"


def read_settings(arguments: Sequence[str]) -> LettersSettings:
    """Return the settings; exits with 2 and a usage line if the arguments are wrong."""
    parser = argparse.ArgumentParser(prog="python -m services.dead_letters", description="Show dead letters.")
    add = parser.add_argument
    add("-n", "--number", type=int, default=10, help="how many (%(default)s)")
    add("--stream", help="of this stream alone")
    add("--from-beginning", action="store_true", help="all that are kept")
    add("-f", "--follow", action="store_true", help="go on with those to come")
    add("-o", "--output", choices=("auto", "table", "json"), default="auto", help="form of the letters")
    return LettersSettings(**vars(parser.parse_args(arguments)))
