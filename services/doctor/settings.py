"""What `doctor` is told on its command line."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from services.doctor.finding import PARTS, Part

__all__ = ["DoctorSettings", "read_settings"]


@dataclass(frozen=True, slots=True)
class DoctorSettings:
    """Settings of one examination: which parts, and in which form findings are written."""

    parts: tuple[Part, ...] = PARTS
    output: str = "auto"


def read_settings(arguments: Sequence[str]) -> DoctorSettings:
    """Return the settings; exits with 2 and a usage line if the arguments are wrong."""
    parser = argparse.ArgumentParser(prog="python -m services.doctor", description="Check a running Skyband.")
    names = [part.value for part in PARTS]
    parser.add_argument("parts", nargs="*", metavar="|".join(names), help="check these alone")
    parser.add_argument("-o", "--output", choices=("auto", "table", "json"), default="auto", help="form of findings")
    found = parser.parse_args(arguments)
    for name in found.parts:
        if name not in names:
            parser.error(f"{name!r} is no part of Skyband; parts are {', '.join(names)}")
    return DoctorSettings(tuple(Part(name) for name in found.parts) or PARTS, found.output)
