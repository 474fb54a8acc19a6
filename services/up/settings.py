"""What `up` is told on its command line."""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["UpSettings", "default_folder", "read_settings"]

# Event time passes 600 times faster than time: one evaluation of the demo's question each second.
DEFAULT_SPEED = 600.0


@dataclass(frozen=True, slots=True)
class UpSettings:
    """Settings of one `up`.

    `port` is control's (results are served at the next free one), `kafka_port` Kafka's; None: the usual one if it is
    free, else any. `empty`: no demo. `speed`: how much faster than time the demo's event time passes, 0: no limit.
    `fresh`: forget what an earlier `up` left in `folder`. `stop`: stop the one that runs there, and nothing else.
    """

    folder: Path
    port: int | None = None
    kafka_port: int | None = None
    empty: bool = False
    speed: float = DEFAULT_SPEED
    fresh: bool = False
    stop: bool = False


def default_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where state is kept unless a folder is named."""
    general = environment.get("XDG_STATE_HOME")
    return (Path(general) if general else Path.home() / ".local" / "state") / "skyband" / "up"


def read_settings(arguments: Sequence[str]) -> UpSettings:
    """Return the settings; exits with 2 and a usage line if the arguments are wrong."""
    parser = argparse.ArgumentParser(prog="python -m services.up", description="Run everything on this machine.")
    add = parser.add_argument
    add("--folder", type=Path, default=default_folder(), help="where state is kept (%(default)s)")
    add("--port", type=_port, help="port of control (50051 if free, else any)")
    add("--kafka-port", type=_port, help="port of Kafka (9092 if free, else any)")
    add("--empty", action="store_true", help="without the demo's definitions and rows")
    add("--speed", type=_speed, default=DEFAULT_SPEED, help="of the demo's event time (%(default)g; 0: no limit)")
    add("--fresh", action="store_true", help="forget what an earlier run left in the folder")
    add("--stop", action="store_true", help="stop what runs on the folder")
    return UpSettings(**vars(parser.parse_args(arguments)))


def _port(text: str) -> int:
    port = int(text)
    if not 0 < port < 65536:
        raise argparse.ArgumentTypeError(f"{port} is no port; ports are 1 to 65535")
    return port


def _speed(text: str) -> float:
    speed = float(text)
    if not 0 <= speed < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} must be at least 0")
    return speed
