"""``python -m services.runtime.embedded fetch``: what a first start would fetch and prepare, beforehand."""

import sys

from services.runtime.embedded.archive import ensure_archive
from services.runtime.embedded.jars import ensure_jars, tell
from skyband.errors import SkybandError


def main(arguments: list[str]) -> int:
    """Run the command and return the exit code."""
    if arguments != ["fetch"]:
        tell("usage: python -m services.runtime.embedded fetch")
        return 2
    try:
        ensure_jars()
        ensure_archive()
    except SkybandError as error:
        tell(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
