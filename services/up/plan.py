"""Which programs `up` runs, in which order, and what each is told. All of that stands here and nowhere else."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import skyband
from services.up.settings import UpSettings

__all__ = [
    "DEFAULT_CONTROL_PORT",
    "DEFAULT_KAFKA_PORT",
    "DEFINITIONS",
    "FLIGHTS",
    "HOST",
    "ROOT",
    "SERVICES",
    "Addresses",
    "Program",
    "demo_programs",
    "environment_of",
    "next_command",
    "service_programs",
]

ROOT = Path(__file__).resolve().parents[2]
# Where skyband.local.demo has them too; it is not imported, for numpy and numba are not wanted here.
_DATA = Path(skyband.__file__).resolve().parent / "local" / "data"
DEFINITIONS = _DATA / "flights.yaml"
FLIGHTS = _DATA / "flights_2013_07.csv.gz"
DEFAULT_CONTROL_PORT = 50051
DEFAULT_KAFKA_PORT = 9092
HOST = "127.0.0.1"

# Readers of a topic before its writers, so that no program waits long for another one.
SERVICES = ("fanout", "engine", "sketch", "align", "control")
_PARTITIONS = "4"


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where things are to be found, host:port."""

    kafka: str
    control: str
    results: str


@dataclass(frozen=True, slots=True)
class Program:
    """One program to run. If it `serves`, it runs until it is stopped; else it has something to do, and ends."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    serves: bool = True


def service_programs(addresses: Addresses) -> list[Program]:
    """Return the services in the order in which they start."""
    general = {
        "SKYBAND_KAFKA_BOOTSTRAP": addresses.kafka,
        "SKYBAND_KAFKA_REPLICATION_FACTOR": "1",
        "SKYBAND_LOG_FORM": "json",
    }
    own = {
        "fanout": {"SKYBAND_LISTEN": addresses.results},
        "control": {
            "SKYBAND_LISTEN": addresses.control,
            "SKYBAND_CONTROL_RESULTS_ADDRESS": addresses.results,
            "SKYBAND_CONTROL_CREATE_TOPICS": _PARTITIONS,
        },
    }
    return [
        Program(name, _module(f"services.{name}"), general | {"SKYBAND_MEMBER": f"{name}-0"} | own.get(name, {}))
        for name in SERVICES
    ]


def demo_programs(addresses: Addresses, settings: UpSettings) -> list[Program]:
    """Return what makes the demo, one after the other: its definitions, and its rows."""
    command = "from skyband.cli.main import run; run()"
    apply = (*_python(), "-c", command, "apply", "-f", str(DEFINITIONS))
    words = ("--definitions", str(DEFINITIONS), "--input", str(FLIGHTS), "--speed", f"{settings.speed:g}")
    produce = (*_module("services.produce"), *words)
    return [
        Program("apply", apply, {"SKYBAND_SERVER": addresses.control}, serves=False),
        Program("produce", produce, {"SKYBAND_KAFKA_BOOTSTRAP": addresses.kafka}, serves=False),
    ]


def next_command(addresses: Addresses, settings: UpSettings) -> str:
    """Return the command to go on with."""
    command = (
        "skyband apply -f examples/factory.yaml" if settings.empty else "skyband queries watch flights/most-delayed"
    )
    if addresses.control == f"{HOST}:{DEFAULT_CONTROL_PORT}":
        return command
    return f"SKYBAND_SERVER={addresses.control} {command}"


def environment_of(program: Program, ready: Path) -> dict[str, str]:
    """Return the whole environment of a program: this process's, the checkout on the path, and its own settings."""
    paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    general = {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "PYTHONUNBUFFERED": "1"}
    return {**os.environ, **general, "SKYBAND_READY_FILE": str(ready), **program.environment}


def _python() -> tuple[str, ...]:
    # -P: what lies in the current folder shadows nothing.
    return (sys.executable, "-P")


def _module(name: str) -> tuple[str, ...]:
    return (*_python(), "-m", name)
