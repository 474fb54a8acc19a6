"""``skyband apply``: what definitions files say becomes so, and the first results are waited for."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skyband.cli.commands import examples
from skyband.cli.failures import FAILED
from skyband.cli.options import start_of
from skyband.cli.remote import ContextOption, FormOption, ServerOption, connect, form_of, print_json

if TYPE_CHECKING:
    from skyband.cli.apply_steps import Step
    from skyband.client.options import Start
    from skyband.model.definitions import Definitions

__all__ = ["EXAMPLES", "HELP", "SHORT", "apply"]

HELP = """Make the streams, group and queries of a definitions file, where they are missing.

What is there stays as it is; a changed k or max_drift is taken over. What cannot change is refused with the reason,
and then nothing is done. On a terminal the first results of new queries are waited for, up to --timeout; scripts ask
for that with --wait."""

SHORT = "Make what a definitions file says."

EXAMPLES = examples(
    "skyband apply -f factory.yaml",
    "skyband apply -f factory.yaml --dry-run",
    "skyband apply -f factory.yaml --begin latest --no-wait",
    "skyband apply -f *.yaml -o json",
)


def apply(
    files: Annotated[list[Path], typer.Option("-f", "--file", help="Definitions, .yaml or .json.", metavar="FILE…")],
    begin: Annotated[
        str | None,
        typer.Option(help="Where new groups begin to read: earliest (default), latest or a time.", metavar="BEGIN"),
    ] = None,
    wait: Annotated[
        bool | None, typer.Option("--wait/--no-wait", help="Whether to wait for first results.", show_default=False)
    ] = None,
    timeout: Annotated[float, typer.Option(help="How long to wait, in seconds.", metavar="S", min=0.0)] = 30.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; show what would be done.")] = False,
    context: ContextOption = None,
    server: ServerOption = None,
    form: FormOption = None,
) -> None:
    """Run the command."""
    from skyband.cli.apply_steps import Action, decide, look_up
    from skyband.files.definitions import load_definitions

    form = form_of(form)
    start = start_of(begin)
    # All files, before anything is done about the first.
    loaded = [load_definitions(file) for file in files]
    with connect(context, server) as client:
        steps = [decide(definitions, look_up(client, definitions)) for definitions in loaded]
        created: list[str] = []
        for definitions, wanted in zip(loaded, steps, strict=True):
            _perform(client, definitions, wanted, start, form, dry_run)
            new = [step.name for step in wanted if step.kind == "query" and step.action is Action.CREATE]
            created += [f"{definitions.group.name}/{name}" for name in new]
        if dry_run or not created:
            return
        wait_here = sys.stderr.isatty() if wait is None else wait
        if wait_here and not _wait(client, created, timeout) and wait:
            raise typer.Exit(FAILED)
    if form == "table":
        print(f"watch:  skyband queries watch {created[0]}", file=sys.stderr)


def _perform(
    client: Any, definitions: "Definitions", steps: "list[Step]", start: "Start", form: str, dry_run: bool
) -> None:
    from skyband.cli.apply_steps import perform

    width = max(len(step.name) for step in steps)
    for step in perform(client, definitions, steps, start, dry_run=dry_run):
        if form == "json":
            document = {"kind": step.kind, "group": definitions.group.name, "name": step.name}
            print_json({**document, "outcome": step.action.value, "detail": step.detail, "dry_run": dry_run})
        else:
            outcome = _would(step.action.value) if dry_run else step.action.value
            print(f"{step.kind:<7} {step.name:<{width}}  {outcome:<{16 if dry_run else 9}}  {step.detail}", flush=True)


def _would(outcome: str) -> str:
    return outcome if outcome == "unchanged" else f"would be {outcome}"


def _wait(client: Any, paths: list[str], timeout_s: float) -> bool:
    """Wait until all queries have a result; say why not if they have none in time. Return whether all have."""
    from skyband.cli.first_results import FirstResults

    waiting = FirstResults(client, paths, timeout_s, time.monotonic, time.sleep)
    return waiting.wait()
