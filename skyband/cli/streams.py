"""``skyband streams``: the streams of a running Skyband."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skyband.cli.commands import examples, family
from skyband.cli.options import attributes_of, given, schema_of, typed
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
    from skyband.model.resources import StreamResource
    from skyband.model.stream import Stream

__all__ = ["EXAMPLES", "app"]

EXAMPLES = examples(
    "skyband streams list",
    "skyband streams add temperature --topic factory.temperature --format json --hi 100 --max-delay 2s",
    "skyband streams add trades --attribute price:0:1000 --attribute volume",
    "skyband streams update temperature --max-delay 5s",
)
STATS_EXAMPLES = examples(
    "skyband streams stats factory",
    "skyband streams stats factory --window 1h",
    "skyband streams stats factory --source spark:july",
    "skyband streams stats factory -o json | jq '.pairs[] | select(.appearance.value < 0.5)'",
)
app = family("Streams: what topics carry.")

_Name = Annotated[str, typer.Argument(metavar="STREAM", help="Name of the stream.")]


def _command(*, is_new: bool) -> Callable[..., None]:
    """Return the command that adds a stream, or the one that changes it: they have the same options."""

    def put(
        name: _Name,
        topic: Annotated[str | None, typer.Option(help="Kafka topic; default: called as the stream.")] = None,
        format: Annotated[
            str | None, typer.Option(help="Form of its records.", metavar="avro|confluent-avro|json")
        ] = None,
        schema: Annotated[str | None, typer.Option(help="Avro schema, or @FILE.")] = None,
        object_id: Annotated[str | None, typer.Option(help="Field of the object's id.", metavar="FIELD")] = None,
        event_time: Annotated[str | None, typer.Option(help="Field of the event time.", metavar="FIELD")] = None,
        value: Annotated[str | None, typer.Option(help="Field of the value.", metavar="FIELD")] = None,
        time_unit: Annotated[str | None, typer.Option(help="Unit of times.", metavar="us|ms|s|iso|kafka")] = None,
        lo: Annotated[float | None, typer.Option(help="Least value; default 0.")] = None,
        hi: Annotated[float | None, typer.Option(help="Largest value; default: no bound.")] = None,
        out_of_range: Annotated[str | None, typer.Option(help="What then.", metavar="reject|clamp")] = None,
        missing: Annotated[str | None, typer.Option(help="Value while unseen: worst, or a number.")] = None,
        attribute: Annotated[
            list[str] | None, typer.Option(help="Attribute of an object stream; repeat it.", metavar="NAME[:LO:HI]")
        ] = None,
        identity: Annotated[str | None, typer.Option(help="What is an object.", metavar="object|row")] = None,
        aggregate: Annotated[
            str | None,
            typer.Option(help="How values combine.", metavar="best|latest|first|sum|count|max|min"),
        ] = None,
        repeat_after: Annotated[
            str | None, typer.Option(help="Promise: an object comes again after that at the earliest, or never.")
        ] = None,
        max_delay: Annotated[str | None, typer.Option(help="How far rows are out of order.", metavar="TIME")] = None,
        late: Annotated[str | None, typer.Option(help="What becomes of later ones.", metavar="apply|drop")] = None,
        idle_after: Annotated[str | None, typer.Option(help="Silence that makes it idle.", metavar="TIME")] = None,
        idle_then: Annotated[str | None, typer.Option(help="Whether others wait then.", metavar="flush|hold")] = None,
        max_ahead: Annotated[str | None, typer.Option(help="Rows further ahead are no rows.", metavar="TIME")] = None,
        context: ContextOption = None,
        server: ServerOption = None,
        form: FormOption = None,
    ) -> None:
        fields = given(object_id=object_id, event_time=event_time, value=value, time_unit=time_unit)
        idle = given(after=idle_after, then=idle_then)
        plain = given(
            topic=topic,
            format=format,
            schema=schema_of(schema),
            lo=lo,
            hi=hi,
            out_of_range=out_of_range,
            missing=_missing(missing),
            attributes=attributes_of(attribute or []),
            identity=identity,
            aggregate=aggregate,
            repeat_after=repeat_after,
            max_delay=max_delay,
            late=late,
            max_ahead=max_ahead,
        )
        words = {**plain, **fields, "schema": schema, "after": idle_after, "then": idle_then, "attributes": None}
        _put(name, is_new, plain, {"fields": fields, "idle": idle}, words, (context, server), form_of(form))

    put.__doc__ = "Run the command."
    return put


def _put(
    name: str,
    is_new: bool,
    plain: dict[str, Any],
    parts: dict[str, dict[str, Any]],
    words: dict[str, object],
    at: tuple[str | None, str | None],
    form: str,
) -> None:
    """Add or change a stream; `parts` are mappings of which what is not said stays as it is."""
    with connect(*at) as client, typed(words, {"after": "idle-after", "then": "idle-then"}):
        if is_new:
            options = {**plain, **{key: part for key, part in parts.items() if part}}
            made = client.create_stream(name, **options)
        else:
            current = client.get_stream(name)
            kept = _parts_of(current.stream)
            changes = {**plain, **{key: {**kept[key], **part} for key, part in parts.items() if part}}
            made = client.update_stream(name, etag=current.stamp.etag, **changes)
    _print_one(made, form)
    print_next(f"skyband groups add NAME --stream {name} --retention 10m" if is_new else "skyband groups list", form)


def _parts_of(stream: "Stream") -> dict[str, dict[str, Any]]:
    from skyband.model.stream_form import dump_stream

    document = dump_stream(stream)
    return {"fields": document["fields"], "idle": document["idle"]}


def _missing(text: str | None) -> float | str | None:
    if text is None or text == "worst":
        return text
    try:
        return float(text)
    except ValueError:
        raise DefinitionError("must be worst or a number", place=f"--missing {text}") from None


app.command(
    "add",
    help="Add a stream.\n\nWhat is not said is as in a definitions file; `skyband streams get` shows it.",
    short_help="Add a stream.",
    epilog=EXAMPLES,
)(_command(is_new=True))
app.command(
    "update",
    help="Change a stream.\n\nGroups that use it go on with its old definition; `skyband groups regenerate` takes the "
    "new one.",
    short_help="Change a stream.",
    epilog=EXAMPLES,
)(_command(is_new=False))


@app.command("list", help="List all streams, by name.", epilog=EXAMPLES)
def list_streams(context: ContextOption = None, server: ServerOption = None, form: FormOption = None) -> None:
    """Run the command."""
    from skyband.cli.documents import STREAM_TITLES, stream_document, stream_row

    with connect(context, server) as client:
        if form_of(form) == "json":
            for resource in client.list_streams():
                print_json(stream_document(resource))
            return
        found = [stream_row(resource) for resource in client.list_streams()]
    if found:
        print_table(STREAM_TITLES, found)
    else:
        print_next("there is no stream; add what a file defines with skyband apply -f FILE", "table")


@app.command("get", help="Show a stream.", epilog=EXAMPLES)
def get(name: _Name, context: ContextOption = None, server: ServerOption = None, form: FormOption = None) -> None:
    """Run the command."""
    with connect(context, server) as client:
        _print_one(client.get_stream(name), form_of(form))


@app.command("delete", help="Remove a stream that no group uses; its topic stays.", epilog=EXAMPLES)
def delete(name: _Name, context: ContextOption = None, server: ServerOption = None, form: FormOption = None) -> None:
    """Run the command."""
    with connect(context, server) as client:
        client.delete_stream(name)
    if form_of(form) == "json":
        print_json({"name": name, "deleted": True})
    else:
        print(f"stream {name} is deleted; its topic stays")


@app.command(
    "stats",
    help="Show what is known of a group's streams: how many objects, which come on several streams, how far apart.\n\n"
    "All of it is estimated over the newest window, with standard errors; observations are counted. Row i, column j of "
    "the lower table: the share of i's objects that come on j too; ? where fewer than 30 sampled objects tell.",
    short_help="Show how many objects streams have, and which they share.",
    epilog=STATS_EXAMPLES,
)
def stats(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Name of the group.")],
    window: Annotated[str | None, typer.Option(help="Over how long; default: the retention.", metavar="TIME")] = None,
    source: Annotated[
        str | None, typer.Option(help="Of a job, over its range; default: the sketch service's.", metavar="NAME")
    ] = None,
    context: ContextOption = None,
    server: ServerOption = None,
    form: FormOption = None,
) -> None:
    """Run the command."""
    from skyband.cli.statistics import print_statistics, statistics_document

    with connect(context, server) as client, typed({"window": window}):
        found = client.statistics(group, window, source=source)
    if form_of(form) == "json":
        print_json(statistics_document(found))
    else:
        print_statistics(found)


def _print_one(resource: "StreamResource", form: str) -> None:
    from skyband.cli.documents import stream_document
    from skyband.cli.records import record

    document = stream_document(resource)
    if form == "json":
        print_json(document)
    else:
        print_record(record(document))
