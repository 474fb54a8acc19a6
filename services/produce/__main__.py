"""``python -m services.produce``: see README.md."""

import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

from services.produce.run import produce
from services.produce.settings import read_settings
from services.runtime.settings import read_kafka_settings
from skyband.cli.failures import run_as_command


def main(arguments: Sequence[str]) -> None:
    """Write rows until they end; the first signal ends it in order, the second at once."""
    settings = read_settings(arguments)
    kafka = read_kafka_settings()
    stop, was_interrupted = threading.Event(), threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()
        if number == signal.SIGINT:
            was_interrupted.set()
        signal.signal(number, signal.SIG_DFL)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    produce(settings, kafka, stop)
    if was_interrupted.is_set():
        raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(run_as_command(main, sys.argv[1:]))
