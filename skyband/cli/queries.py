"""``skyband queries``: the queries of a running Skyband, and their results."""

from typing import TYPE_CHECKING, Annotated

import typer

from skyband.cli.commands import examples, family
from skyband.cli.options import given, require_of, typed, window_of
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
    time_zone,
)
from skyband.errors import DefinitionError

if TYPE_CHECKING:
    from skyband.model.resources import QueryResource

__all__ = ["EXAMPLES", "app"]

EXAMPLES = examples(
    "skyband queries list",
    "skyband queries add factory/hottest --k 10 --score '0.7*temperature + 3*vibration' --window 60s --slide 10s",
    "skyband queries add factory/hot --k 10 --score temperature --window 1h --memory-budget 64MB --max-error 0.05",
    "skyband queries watch factory/hottest",
    "skyband queries watch factory/hottest -o json | jq .entered",
    "skyband queries describe factory/hottest",
)
app = family("Ask standing queries, and watch their results.")

_Path = Annotated[str, typer.Argument(metavar="GROUP/QUERY", help="Group and name of the query.")]


@app.command(
    "add",
    help="Add a query to a group.\n\nIt is answered at once from what the group keeps.",
    short_help="Add a query.",
    epilog=EXAMPLES,
)
def add(
    path: _Path,
    k: Annotated[int, typer.Option(help="How many objects.", metavar="N")],
    score: Annotated[str, typer.Option(help="By what they are ranked, of the group's attributes.", metavar="SCORE")],
    window: Annotated[str, typer.Option(help="How much counts: a time (60s), or a number of rows.", metavar="SIZE")],
    slide: Annotated[
        str | None, typer.Option(help="How often there is a result; default: as the window.", metavar="SIZE")
    ] = None,
    order: Annotated[str | None, typer.Option(help="Which end is on top.", metavar="highest|lowest")] = None,
    require: Annotated[
        str | None,
        typer.Option(help="Streams that must have seen an object: any, all or a list.", metavar="any|all|STREAM,…"),
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="How it is answered.", metavar="auto|view|eaa-tail|…", show_default=False)
    ] = None,
    max_error: Annotated[
        float | None,
        typer.Option(help="Probability that what was forgotten matters after all.", metavar="P", show_default=False),
    ] = None,
    target_precision: Annotated[
        float | None, typer.Option(help="Share of the exact result to be shown.", metavar="SHARE", show_default=False)
    ] = None,
    memory_budget: Annotated[
        str | None, typer.Option(help="State for each shard; beyond it more is forgotten.", metavar="64MB")
    ] = None,
    candidates: Annotated[
        int | None, typer.Option(help="Outsiders to tell that could still come in.", metavar="N", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; show what it would be.")] = False,
    context: ContextOption = None,
    server: ServerOption = None,
    form: FormOption = None,
) -> None:
    """Run the command."""
    group, _, name = path.partition("/")
    if not group or not name or "/" in name:
        raise DefinitionError("must be GROUP/QUERY, such as factory/hottest", place=path)
    sizes = given(window=window_of(window), slide=None if slide is None else window_of(slide))
    limits = given(
        max_error=max_error, target_precision=target_precision, memory_budget=memory_budget, candidates=candidates
    )
    options = given(order=order, require=require_of(require), algorithm=algorithm) | limits
    words = {"k": k, "score": score, "window": window, "size": None, "slide": slide, **options, "require": require}
    with connect(context, server) as client, typed(words):
        query = client.create_query(group, name=name, k=k, score=score, validate_only=dry_run, **sizes, **options)
    _print_one(query.resource, form_of(form))
    print_next(f"skyband queries watch {path}", form_of(form))


@app.command("list", help="List the queries of a group, or all.", epilog=EXAMPLES)
def list_queries(
    group: Annotated[
        str | None, typer.Argument(metavar="[GROUP]", help="Name of the group.", show_default=False)
    ] = None,
    context: ContextOption = None,
    server: ServerOption = None,
    form: FormOption = None,
) -> None:
    """Run the command."""
    from skyband.cli.documents import QUERY_TITLES, query_document, query_row

    with connect(context, server) as client:
        if form_of(form) == "json":
            for resource in client.list_queries(group or "-"):
                print_json(query_document(resource))
            return
        found = [query_row(resource) for resource in client.list_queries(group or "-")]
    if found:
        print_table(QUERY_TITLES, found)
    else:
        print_next("there is no query; add one with skyband queries add, or skyband apply -f FILE", "table")


@app.command("get", help="Show a query.", epilog=EXAMPLES)
def get(path: _Path, context: ContextOption = None, server: ServerOption = None, form: FormOption = None) -> None:
    """Run the command."""
    with connect(context, server) as client:
        _print_one(client.query(path).resource, form_of(form))


@app.command(
    "update",
    help="Change k of a query.\n\nOne that asks something else is another query: add it.",
    short_help="Change k of a query.",
    epilog=EXAMPLES,
)
def update(
    path: _Path,
    k: Annotated[int, typer.Option(help="How many objects.", metavar="N")],
    context: ContextOption = None,
    server: ServerOption = None,
    form: FormOption = None,
) -> None:
    """Run the command."""
    with connect(context, server) as client, typed({"k": k}):
        changed = client.update_query(path, k=k)
    _print_one(changed, form_of(form))


@app.command("pause", help="Stop the evaluation of a query; it keeps its place.", epilog=EXAMPLES)
def pause(path: _Path, context: ContextOption = None, server: ServerOption = None, form: FormOption = None) -> None:
    """Run the command."""
    with connect(context, server) as client:
        changed = client.pause_query(path)
    _print_state(changed, form_of(form))
    print_next(f"skyband queries resume {path}", form_of(form))


@app.command("resume", help="Evaluate a paused query again.", epilog=EXAMPLES)
def resume(path: _Path, context: ContextOption = None, server: ServerOption = None, form: FormOption = None) -> None:
    """Run the command."""
    with connect(context, server) as client:
        changed = client.resume_query(path)
    _print_state(changed, form_of(form))


@app.command("cancel", help="The same as delete.", epilog=EXAMPLES)
@app.command("delete", help="Remove a query; who watches it is told.", epilog=EXAMPLES)
def delete(path: _Path, context: ContextOption = None, server: ServerOption = None, form: FormOption = None) -> None:
    """Run the command."""
    with connect(context, server) as client:
        client.delete_query(path)
    if form_of(form) == "json":
        print_json({"query": path, "deleted": True})
    else:
        print(f"query {path} is deleted")


@app.command("describe", help="Say how a query is doing: its state, why, and what to do.", epilog=EXAMPLES)
def describe(path: _Path, context: ContextOption = None, server: ServerOption = None, form: FormOption = None) -> None:
    """Run the command."""
    from skyband.cli.documents import description_document

    with connect(context, server) as client:
        found = client.describe_query(path, time_zone=time_zone())
    if form_of(form) == "json":
        print_json(description_document(path, found))
    else:
        print(found.headline)
        print_record([(f"  {label}", text) for label, text in found.lines])


@app.command("explain", help="Explain how a query is answered, and why so.", epilog=EXAMPLES)
def explain(path: _Path, context: ContextOption = None, server: ServerOption = None, form: FormOption = None) -> None:
    """Run the command."""
    with connect(context, server) as client:
        text = client.explain_query(path)
    if form_of(form) == "json":
        print_json({"query": path, "text": text})
    else:
        print(text)


@app.command(
    "watch",
    help="Watch the results of a query as they come.\n\nOn a terminal a table in place; else JSON Lines: the first "
    "result whole (kind snapshot), then what changes (kind changes). A break is mended, and nothing is missed: it goes "
    "on with the results that came meanwhile, or says how many were passed over.",
    short_help="Watch the results of a query.",
    epilog=EXAMPLES,
)
def watch(
    path: _Path,
    snapshots: Annotated[
        bool, typer.Option("--snapshots", help="Every result whole, as a replay writes it, one below the other.")
    ] = False,
    limit: Annotated[int | None, typer.Option(help="End after so many results.", metavar="N", min=1)] = None,
    candidates: Annotated[
        int | None,
        typer.Option(help="How many to show that could still come in; default: all that it tells.", metavar="N", min=0),
    ] = None,
    context: ContextOption = None,
    server: ServerOption = None,
    form: FormOption = None,
) -> None:
    """Run the command."""
    from skyband.cli.watch import watch_query

    with connect(context, server) as client:
        watch_query(client, path, form_of(form), snapshots=snapshots, limit=limit, candidates=candidates)


def _print_one(resource: "QueryResource", form: str) -> None:
    from skyband.cli.documents import query_document
    from skyband.cli.records import record

    document = query_document(resource)
    print_json(document) if form == "json" else print_record(record(document))


def _print_state(resource: "QueryResource", form: str) -> None:
    from skyband.cli.documents import query_document

    if form == "json":
        print_json(query_document(resource))
    else:
        print(f"query {resource.group}/{resource.query.name} is {resource.state}")
