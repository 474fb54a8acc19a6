"""``skyband groups``: the groups of a running Skyband."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skyband.cli.commands import examples, family
from skyband.cli.options import given, start_of, typed
from skyband.cli.remote import (
    ContextOption,
    FormOption,
    ServerOption,
    connect,
    form_of,
    print_json,
    print_next,
    print_record,
    print_table,
)
from skyband.errors import DefinitionError

if TYPE_CHECKING:
    from skyband.model.resources import GroupResource

__all__ = ["EXAMPLES", "app"]

EXAMPLES = examples(
    "skyband groups list",
    "skyband groups add factory --stream temperature --stream vibration --retention 10m --shards 4",
    "skyband groups update factory --max-drift 5m",
    "skyband groups regenerate factory --begin latest --shards 8",
    "skyband groups regenerate factory --from-rebuild rebuild.json",
)
app = family("Groups: streams that are read together.")

_Name = Annotated[str, typer.Argument(metavar="GROUP", help="Name of the group.")]
_Streams = Annotated[
    list[str] | None, typer.Option("--stream", help="A stream of the group; repeat it, in order.", metavar="STREAM")
]
_Retention = Annotated[
    str | None, typer.Option(help="How long rows are kept: at least the longest window.", metavar="TIME")
]
_RetentionRows = Annotated[int | None, typer.Option(help="The same for windows in rows.", metavar="N")]
_Pane = Annotated[str | None, typer.Option(help="What slides are multiples of; default 1s.", metavar="TIME")]
_Shards = Annotated[int | None, typer.Option(help="Parts that share the work; default 1.", metavar="N")]
_MaxDrift = Annotated[
    str | None, typer.Option(help="How far a source may be ahead of the others; default 1m.", metavar="TIME")
]
_Begin = Annotated[
    str | None, typer.Option(help="Where to begin to read: earliest (default), latest or a time.", metavar="BEGIN")
]


@app.command(
    "add",
    help="Add a group over streams that exist.\n\n`skyband apply -f FILE` adds streams, group and queries at once.",
    short_help="Add a group.",
    epilog=EXAMPLES,
)
def add(
    name: _Name,
    streams: Annotated[
        list[str], typer.Option("--stream", help="A stream of the group; repeat it, in order.", metavar="STREAM")
    ],
    retention: Annotated[
        str, typer.Option(help="How long rows are kept: at least the longest window.", metavar="TIME")
    ],
    retention_rows: _RetentionRows = None,
    pane: _Pane = None,
    shards: _Shards = None,
    max_drift: _MaxDrift = None,
    begin: _Begin = None,
    context: ContextOption = None,
    server: ServerOption = None,
    form: FormOption = None,
) -> None:
    """Run the command."""
    options = given(
        streams=streams,
        retention=retention,
        retention_rows=retention_rows,
        pane=pane,
        shards=shards,
        max_drift=max_drift,
    )
    with connect(context, server) as client, typed({**options, "streams": None}):
        made = client.create_group(name, begin=start_of(begin), **options)
    _print_one(made, form_of(form))
    print_next(f"skyband queries add {name}/NAME --k 10 --score … --window 1m", form_of(form))


@app.command("list", help="List all groups, by name.", epilog=EXAMPLES)
def list_groups(context: ContextOption = None, server: ServerOption = None, form: FormOption = None) -> None:
    """Run the command."""
    from skyband.cli.documents import GROUP_TITLES, group_document, group_row

    with connect(context, server) as client:
        if form_of(form) == "json":
            for resource in client.list_groups():
                print_json(group_document(resource))
            return
        found = [group_row(resource) for resource in client.list_groups()]
    if found:
        print_table(GROUP_TITLES, found, right=("generation", "shards", "source partitions"))
    else:
        print_next("there is no group; add what a file defines with skyband apply -f FILE", "table")


@app.command("get", help="Show a group.", epilog=EXAMPLES)
def get(name: _Name, context: ContextOption = None, server: ServerOption = None, form: FormOption = None) -> None:
    """Run the command."""
    with connect(context, server) as client:
        _print_one(client.get_group(name), form_of(form))


@app.command(
    "update",
    help="Change how far the sources of a group may drift apart.\n\nAll else takes a new generation: see regenerate.",
    short_help="Change a group.",
    epilog=EXAMPLES,
)
def update(
    name: _Name,
    max_drift: _MaxDrift = None,
    context: ContextOption = None,
    server: ServerOption = None,
    form: FormOption = None,
) -> None:
    """Run the command."""
    options = given(max_drift=max_drift)
    with connect(context, server) as client, typed(options):
        changed = client.update_group(name, **options)
    _print_one(changed, form_of(form))


@app.command(
    "regenerate",
    help="Begin a new generation of a group.\n\nIt reads its sources anew, with its streams as they are defined now; "
    "its queries go on. This is how a group gets more shards, another pane, or past what was lost.",
    short_help="Begin a new generation of a group.",
    epilog=EXAMPLES,
)
def regenerate(
    name: _Name,
    begin: _Begin = None,
    streams: _Streams = None,
    retention: _Retention = None,
    retention_rows: _RetentionRows = None,
    pane: _Pane = None,
    shards: _Shards = None,
    max_drift: _MaxDrift = None,
    from_rebuild: Annotated[
        Path | None,
        typer.Option(help="Go on from what python -m spark.rebuild made; no other option is needed.", metavar="FILE"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; show what it would be.")] = False,
    context: ContextOption = None,
    server: ServerOption = None,
    form: FormOption = None,
) -> None:
    """Run the command."""
    options = given(
        streams=streams or [],
        retention=retention,
        retention_rows=retention_rows,
        pane=pane,
        shards=shards,
        max_drift=max_drift,
    )
    with connect(context, server) as client, typed({**options, "streams": None}):
        rebuild = None if from_rebuild is None else from_rebuild.read_text(encoding="utf-8")
        if rebuild is not None and (options or begin is not None):
            raise DefinitionError(
                "the rebuild says all of the group; leave the other options out", place="--from-rebuild"
            )
        made = client.regenerate_group(name, begin=start_of(begin), rebuild=rebuild, validate_only=dry_run, **options)
    _print_one(made, form_of(form))


@app.command("delete", help="Remove a group; its source topics stay.", short_help="Remove a group.", epilog=EXAMPLES)
def delete(
    name: _Name,
    force: Annotated[bool, typer.Option("--force", help="Remove its queries too.")] = False,
    context: ContextOption = None,
    server: ServerOption = None,
    form: FormOption = None,
) -> None:
    """Run the command."""
    with connect(context, server) as client:
        client.delete_group(name, force=force)
    if form_of(form) == "json":
        print_json({"name": name, "deleted": True})
    else:
        print(f"group {name} is deleted; its streams and their topics stay")


def _print_one(resource: "GroupResource", form: str) -> None:
    from skyband.cli.documents import group_document
    from skyband.cli.records import record

    document = group_document(resource)
    if form == "json":
        print_json(document)
        return
    sources = document.pop("sources")
    document["begins"] = [f"{s['stream']}/{s['partition']} at {s['offset']:,}" for s in sources]
    print_record(record(document))
