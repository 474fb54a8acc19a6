"""``python -m services.up``: run everything on this machine until it is told to stop, or stop what runs."""

import signal
import sys
from collections.abc import Sequence
from types import FrameType

from services.up.folders import Folders, stop_running
from services.up.run import run, say
from services.up.settings import read_settings
from skyband.errors import SkybandError

_INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments ask and return the exit code."""
    settings = read_settings(arguments)
    try:
        if settings.stop:
            was_up = stop_running(Folders(settings.folder))
            say("stopped" if was_up else f"nothing is up on {settings.folder}")
            return 0
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)
        run(settings)
    except SkybandError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    return 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
