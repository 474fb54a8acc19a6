"""``skyband contexts``: deployments by name."""

from dataclasses import replace
from typing import Annotated

import typer

from skyband.cli.commands import examples, family
from skyband.cli.contexts import DEFAULT_CONTROL, DEFAULT_KAFKA, Context, Contexts
from skyband.cli.remote import FormOption, form_of, print_json, print_next, print_table
from skyband.errors import DefinitionError

__all__ = ["EXAMPLES", "app"]

EXAMPLES = examples(
    "skyband contexts list",
    "skyband contexts add production --control skyband.example.com:443 --tls --kafka kafka.example.com:9092",
    "skyband contexts use production",
    "SKYBAND_CONTEXT=production skyband queries list",
)
app = family("Deployments that commands talk to, by name.")

_Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the context.")]


@app.command("list", help="List the contexts; the current one is marked.", epilog=EXAMPLES)
def list_contexts(form: FormOption = None) -> None:
    """Run the command."""
    contexts = Contexts()
    known = sorted(contexts.known.items())
    if form_of(form) == "json":
        for name, context in known:
            print_json({**_document(context), "current": name == contexts.current})
        return
    if not known:
        print(f"there is no context; commands talk to {DEFAULT_CONTROL} and Kafka at {DEFAULT_KAFKA}")
        print_next("skyband contexts add NAME --control HOST:PORT", "table")
        return
    rows = [
        (
            "*" if name == contexts.current else "",
            name,
            context.control,
            context.results or "where control says",
            context.kafka,
            "yes" if context.tls else "no",
        )
        for name, context in known
    ]
    print_table(("", "context", "control", "results", "kafka", "tls"), rows)


@app.command("add", help="Add a context, or change one. The first becomes the current one.", epilog=EXAMPLES)
def add(
    name: _Name,
    control: Annotated[str | None, typer.Option(help="Address of control.", metavar="HOST:PORT")] = None,
    results: Annotated[
        str | None, typer.Option(help="Address of results; default: where control says.", metavar="HOST:PORT")
    ] = None,
    kafka: Annotated[str | None, typer.Option(help="Address of Kafka.", metavar="HOST:PORT,…")] = None,
    tls: Annotated[bool | None, typer.Option("--tls/--no-tls", help="Whether servers speak TLS.")] = None,
) -> None:
    """Run the command."""
    contexts = Contexts()
    before = contexts.known.get(name, Context(name=name))
    for option, address in (("--control", control), ("--results", results)):
        _check_address(option, address)
    context = replace(
        before,
        control=before.control if control is None else control,
        results=before.results if results is None else results,
        kafka=before.kafka if kafka is None else kafka,
        tls=before.tls if tls is None else tls,
    )
    contexts.put(context)
    current = "the current one" if contexts.current == name else f"choose it with: skyband contexts use {name}"
    print(f"context {name}: control {context.control}, Kafka {context.kafka} ({current})")


@app.command("use", help="Make a context the current one.", epilog=EXAMPLES)
def use(name: _Name) -> None:
    """Run the command."""
    contexts = Contexts()
    contexts.use(name)
    print(f"commands now talk to {name}: control {contexts.known[name].control}, Kafka {contexts.known[name].kafka}")


@app.command("remove", help="Forget a context.", epilog=EXAMPLES)
def remove(name: _Name) -> None:
    """Run the command."""
    contexts = Contexts()
    contexts.remove(name)
    print(f"context {name} is forgotten" + (f"; the current one is {contexts.current}" if contexts.current else ""))


def _document(context: Context) -> dict[str, object]:
    return {
        "name": context.name,
        "control": context.control,
        "results": context.results or None,
        "kafka": context.kafka,
        "tls": context.tls,
    }


def _check_address(option: str, address: str | None) -> None:
    if not address:
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise DefinitionError(f"must be host:port, such as {DEFAULT_CONTROL}", place=f"{option} {address}")
