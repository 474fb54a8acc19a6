"""``skyband demo --kafka``: the demo's month of flights through a real Kafka, checked against brute force.

All of Skyband runs in one process beside this one, in topics of a prefix of its own, which are removed at the end:

::

    flights ─► services.produce ─► demo-1a2b3c4d-departure_delay … ─► services.serve ─► results ─► compared here
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from skyband.cli.apply_steps import decide, look_up, perform
from skyband.cli.figures import as_time
from skyband.cli.remote import on_retry
from skyband.cli.services import service_command
from skyband.client import Client
from skyband.errors import SkybandError
from skyband.files.definitions import dump_definitions, load_definitions
from skyband.local.demo import DEFINITIONS, FLIGHTS, difference, evaluation_count, read_rows, truths
from skyband.model.definitions import Definitions
from skyband.model.result import Result, ResultRow

__all__ = ["demo_on_kafka", "own_definitions"]

_PARTITIONS = 4
_READY_S = 60.0
_STOP_S = 30.0
# Longer than the whole month: how fast each partition is read makes no difference.
_DRIFT_US = 40 * 86_400_000_000


def demo_on_kafka(settings: Mapping[str, str]) -> None:
    """Run the demo on the Kafka that `settings` name, and remove what it made there.

    Raises SkybandError at the first result that differs, typer.Exit with the code of a process that failed.
    """
    prefix = f"demo-{uuid.uuid4().hex[:8]}-"
    console = Console(stderr=True, highlight=False)
    console.print(f"demo on Kafka at {settings['SKYBAND_KAFKA_BOOTSTRAP']}, in topics {prefix}…, removed at the end")
    on_retry(lambda error, attempt: None)
    with tempfile.TemporaryDirectory(prefix="skyband-demo-") as name:
        folder = Path(name)
        definitions = own_definitions(load_definitions(DEFINITIONS), prefix)
        file = folder / "flights.json"
        file.write_text(json.dumps(dump_definitions(definitions)), encoding="utf-8")
        try:
            words = ["--definitions", str(file), "--input", str(FLIGHTS), "--create-topics", str(_PARTITIONS)]
            _run("produce", [*words, "--output", "table"], settings)
            own = {**settings, "SKYBAND_KAFKA_TOPIC_PREFIX": prefix}
            with _serving(folder, own) as address:
                checked = _check(address, own, definitions, console)
        finally:
            _forget(prefix, settings)
    print(f"{checked:,} evaluations checked against brute force: all equal.")


def own_definitions(definitions: Definitions, prefix: str) -> Definitions:
    """Return the definitions over topics of their own."""
    streams = tuple(replace(stream, topic=prefix + stream.name) for stream in definitions.group.streams)
    return replace(definitions, group=replace(definitions.group, streams=streams, max_drift_us=_DRIFT_US))


def _check(address: str, settings: Mapping[str, str], definitions: Definitions, console: Console) -> int:
    """Ask the demo's question and compare every answer with brute force's; return how many there were."""
    rows = read_rows()
    with Client(address, retry_s=_READY_S) as client:
        steps = decide(definitions, look_up(client, definitions))
        for _ in perform(client, definitions, steps, "earliest", dry_run=False):
            pass
    bar = Progress(
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    checked = 0
    with bar, _results(settings) as results:
        task = bar.add_task("evaluations equal to brute force", total=evaluation_count(rows))
        for truth in truths(rows):
            wrong = difference(next(results, None), truth)
            if wrong is not None:
                raise SkybandError(f"{wrong}; {checked:,} evaluations before it were equal")
            checked += 1
            bar.update(task, completed=checked, description=f"{as_time(truth.window_end)}  equal to brute force")
    return checked


@contextmanager
def _results(settings: Mapping[str, str]) -> Iterator[Iterator[Result]]:
    """Read results from Kafka while the context lasts: each once, in order."""
    command, environment = _module("results", [], settings)
    reading = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    assert reading.stdout is not None
    try:
        yield map(_result, reading.stdout)
    finally:
        reading.terminate()
        reading.wait()
        reading.stdout.close()


def _result(line: str) -> Result:
    document = json.loads(line)
    rows = tuple(ResultRow(r["rank"], r["object_id"], r["score"], r["attributes"]) for r in document.pop("rows"))
    return Result(uid="", rows=rows, **document)


def _module(name: str, words: list[str], settings: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs a part of the service `produce`, and its environment."""
    command, environment = service_command("produce", words, settings, command="demo --kafka")
    command[command.index("services.produce")] = f"services.produce.{name}"
    return command, environment


def _run(name: str, words: list[str], settings: Mapping[str, str]) -> None:
    command, environment = service_command(name, words, settings, command="demo --kafka")
    code = subprocess.call(command, env=environment, stdout=sys.stderr.fileno())
    if code:
        raise typer.Exit(code)


def _forget(prefix: str, settings: Mapping[str, str]) -> None:
    """Remove the demo's topics; if that fails, its own sentence says why, and the demo's outcome stays what it is."""
    command, environment = _module("forget", [prefix], settings)
    if subprocess.call(command, env=environment):
        print(f"topics {prefix}… are still there; delete them with kafka-topics --delete", file=sys.stderr)


@contextmanager
def _serving(folder: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """Run all of Skyband while the context lasts; yields its address. Raises SkybandError if it does not start."""
    ready, log = folder / "ready.json", folder / "serve.log"
    own = {
        "SKYBAND_LISTEN": "127.0.0.1:0",
        "SKYBAND_READY_FILE": str(ready),
        "SKYBAND_LOG_FORM": "json",
    }
    command, environment = service_command("serve", [], {**settings, **own}, command="demo --kafka")
    with log.open("wb") as out:
        running = subprocess.Popen(command, env=environment, stdout=out, stderr=out, cwd=os.path.sep)
    try:
        give_up_s = time.monotonic() + _READY_S
        while not ready.exists():
            if running.poll() is not None or time.monotonic() > give_up_s:
                raise SkybandError(f"Skyband did not start: {_last_line(log)}")
            time.sleep(0.1)
        yield json.loads(ready.read_text(encoding="utf-8"))["address"]
    finally:
        running.terminate()
        try:
            running.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
