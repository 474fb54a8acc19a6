"""One `up` from its start to its end."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime

from services.runtime.embedded import EmbeddedKafka
from services.runtime.embedded.ports import free_ports, is_free
from services.up.child import Child
from services.up.events import DEMO_SENT_BEFORE, KAFKA_READY, KAFKA_STARTING, STOPPED, STOPPING
from services.up.folders import Folders
from services.up.log_lines import as_line
from services.up.plan import (
    DEFAULT_CONTROL_PORT,
    DEFAULT_KAFKA_PORT,
    HOST,
    Addresses,
    Program,
    demo_programs,
    next_command,
    service_programs,
)
from services.up.settings import UpSettings
from services.up.supervisor import Supervisor
from skyband.errors import DefinitionError

__all__ = ["run", "say"]

_LOOK_S = 0.1
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def say(text: str) -> None:
    """Write a line to stdout; if that is gone (the terminal was closed), stopping still goes on."""
    with contextlib.suppress(OSError):
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def tell(name: str, text: str, level: str = "info") -> None:
    """Write a line of the stream of events."""
    say(as_line(datetime.now().astimezone(), name, text, level))


def run(
    settings: UpSettings,
    *,
    services: Callable[[Addresses], Sequence[Program]] = service_programs,
    tasks: Callable[[Addresses, UpSettings], Sequence[Program]] = demo_programs,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Bring everything up and keep it so until a KeyboardInterrupt; return with everything stopped.

    Raises, also with everything stopped, KeyboardInterrupt if it came before everything was up, and SkybandError if
    something cannot be brought up.
    """
    folders = Folders(settings.folder.absolute())
    # Held until this process ends.
    folders.claim()
    if settings.fresh:
        folders.forget()
    kafka = EmbeddedKafka(folders.kafka, port=settings.kafka_port or _usual_or_any(DEFAULT_KAFKA_PORT))
    supervisor = Supervisor(kafka, tell=tell, clock=time.monotonic)
    try:
        tell("kafka", KAFKA_STARTING)
        kafka.start()
        tell("kafka", f"{KAFKA_READY} at {kafka.bootstrap}")
        addresses = _addresses(settings, kafka.bootstrap)
        chosen = _tasks(settings, folders, addresses, tasks)
        supervisor.start(
            [Child(program, folders, tell, say) for program in services(addresses)],
            [Child(program, folders, tell, say) for program in chosen],
            when_ready=lambda: _ready(settings, folders, addresses),
        )
        while True:
            supervisor.step()
            if supervisor.task_name == "produce":
                folders.demo_sent.touch()
            pause(_LOOK_S)
    except KeyboardInterrupt:
        if not supervisor.was_ready:
            raise
    finally:
        # A second signal ends this process at once; the guards then end the rest.
        for number in _STOP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        tell("up", STOPPING)
        supervisor.stop()
        tell("up", STOPPED)


def _tasks(
    settings: UpSettings,
    folders: Folders,
    addresses: Addresses,
    tasks: Callable[[Addresses, UpSettings], Sequence[Program]],
) -> Sequence[Program]:
    if settings.empty:
        return ()
    if folders.demo_sent.exists():
        tell("up", DEMO_SENT_BEFORE)
        return ()
    return tasks(addresses, settings)


def _addresses(settings: UpSettings, kafka: str) -> Addresses:
    if settings.port is not None and not is_free(settings.port):
        raise DefinitionError(
            f"port {settings.port} of {HOST}, wanted for control, is in use; name another one", place="--port"
        )
    control = settings.port or _usual_or_any(DEFAULT_CONTROL_PORT)
    results = control + 1 if control < 65535 and is_free(control + 1) else free_ports(1)[0]
    return Addresses(kafka, f"{HOST}:{control}", f"{HOST}:{results}")


def _usual_or_any(port: int) -> int:
    return port if is_free(port) else free_ports(1)[0]


def _ready(settings: UpSettings, folders: Folders, addresses: Addresses) -> None:
    folders.write_ready(
        "up",
        {
            "pid": os.getpid(),
            "control": addresses.control,
            "results": addresses.results,
            "kafka": addresses.kafka,
        },
    )
    say(f"\nSkyband is up: control {addresses.control}, results {addresses.results}, Kafka {addresses.kafka}")
    say(f"logs:   {folders.root / 'logs'}")
    say("stop:   Ctrl-C, or: skyband down")
    say(f"{'next' if settings.empty else 'watch'}:  {next_command(addresses, settings)}\n")
