"""What applying a definitions file takes: what is there already, what is missing, what differs; and doing it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from skyband.cli.figures import count
from skyband.client import Client
from skyband.client.options import Start
from skyband.errors import ConflictError, NotFoundError
from skyband.model.definitions import Definitions
from skyband.model.duration import format_duration
from skyband.model.group import Group
from skyband.model.planner import plan
from skyband.model.query import Query, QueryState
from skyband.model.query_form import dump_query
from skyband.model.resources import GroupResource, GroupSpec, QueryResource, StreamResource
from skyband.model.stream import Stream
from skyband.model.stream_form import dump_stream

__all__ = ["Action", "Known", "Step", "decide", "look_up", "perform"]


class Action(StrEnum):
    """What is done about one thing of the file."""

    CREATE = "created"
    UPDATE = "updated"
    KEEP = "unchanged"


@dataclass(frozen=True, slots=True)
class Known:
    """What the server has of the names in a file."""

    streams: Mapping[str, StreamResource] = field(default_factory=dict)
    group: GroupResource | None = None
    queries: Mapping[str, QueryResource] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """What is done about one thing. `detail` is shown; `changes` are the fields that change."""

    kind: str
    name: str
    action: Action
    detail: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)


def look_up(client: Client, definitions: Definitions) -> Known:
    """Return what the server has."""
    streams = {}
    for stream in definitions.group.streams:
        found = _found(lambda name=stream.name: client.get_stream(name))  # type: ignore[misc]
        if found is not None:
            streams[stream.name] = found
    group = _found(lambda: client.get_group(definitions.group.name))
    queries = {}
    if group is not None:
        queries = {resource.query.name: resource for resource in client.list_queries(group.group.name)}
    return Known(streams, group, queries)


def decide(definitions: Definitions, known: Known) -> list[Step]:
    """Return the steps, in the order of the file: streams, group, queries.

    Raises ConflictError, a sentence for each thing that is there and cannot become what the file says.
    """
    refusals: list[str] = []
    steps: list[Step] = []
    group = definitions.group
    decisions: list[Callable[[], Step]] = [
        *(
            lambda stream=stream: _stream(stream, known.streams.get(stream.name), group.name)
            for stream in group.streams
        ),
        lambda: _group(group, known.group, known.streams),
        *(lambda query=query: _query(group, query, known.queries.get(query.name)) for query in definitions.queries),
    ]
    for decision in decisions:
        try:
            steps.append(decision())
        except ConflictError as refusal:
            refusals.append(str(refusal))
    if refusals:
        raise ConflictError("\n".join(refusals))
    return steps


def perform(
    client: Client, definitions: Definitions, steps: list[Step], begin: Start, *, dry_run: bool
) -> Iterator[Step]:
    """Do the steps and yield each, with what came of it.

    Streams are yielded once their group is there, which knows of how many partitions their topics are; if that fails,
    before the error is raised. With `dry_run` nothing changes, and the server is asked only what it can know.
    """
    streams = {stream.name: stream for stream in definitions.group.streams}
    queries = {query.name: query for query in definitions.queries}
    waiting: list[Step] = []
    is_new = any(step.action is Action.CREATE and step.kind == "stream" for step in steps)
    for step in steps:
        if step.kind == "stream":
            if step.action is Action.CREATE:
                _create_stream(client, streams[step.name], dry_run)
            waiting.append(step)
        elif step.kind == "group":
            made = None
            try:
                # The server cannot say what a group over streams would be that are not there.
                if not (dry_run and is_new):
                    made = _do_group(client, definitions.group, step, begin, dry_run)
            finally:
                yield from (_with_partitions(each, made) for each in waiting)
            yield step
        else:
            yield _do_query(client, definitions.group, queries[step.name], step, dry_run)


def _found(get: Callable[[], Any]) -> Any:
    try:
        return get()
    except NotFoundError:
        return None


# --- decisions


def _stream(stream: Stream, there: StreamResource | None, group: str) -> Step:
    topic = stream.topic or stream.name
    detail = f"topic {topic}, {stream.format}"
    if there is None:
        return Step("stream", stream.name, Action.CREATE, detail)
    wanted, found = dump_stream(stream), dump_stream(there.stream)
    differing = [key for key in dict.fromkeys([*wanted, *found]) if wanted.get(key) != found.get(key)]
    if differing:
        differences = ", ".join(f"{key} {_words(found.get(key))}, not {_words(wanted.get(key))}" for key in differing)
        raise ConflictError(
            f"stream {stream.name!r} is there with {differences}; change it with `skyband streams update "
            f"{stream.name}`, then `skyband groups regenerate {group}`; or give the stream another name"
        )
    return Step("stream", stream.name, Action.KEEP, detail)


def _group(group: Group, there: GroupResource | None, streams: Mapping[str, StreamResource]) -> Step:
    keeps = format_duration(group.retention_us) + (
        f" and {count(group.retention_rows, 'row')}" * bool(group.retention_rows)
    )
    detail = f"{count(len(group.streams), 'stream')}, {count(group.shards, 'shard')}, keeps {keeps}"
    if there is None:
        return Step("group", group.name, Action.CREATE, detail)
    wanted, found = _group_words(GroupSpec.of(group)), _group_words(GroupSpec.of(there.group))
    differing = [key for key in wanted if wanted[key] != found[key]]
    if differing:
        differences = ", ".join(f"{key.replace('-', '_')} {found[key]}, not {wanted[key]}" for key in differing)
        options = " ".join(f"--{key} {wanted[key]}" for key in differing if key != "streams")
        options += "".join(f" --stream {stream.name}" for stream in group.streams) * ("streams" in differing)
        raise ConflictError(
            f"group {group.name!r} is there with {differences}; that takes a new generation: "
            f"skyband groups regenerate {group.name} {options.strip()}"
        )
    if there.group.max_drift_us != group.max_drift_us:
        before, after = format_duration(there.group.max_drift_us), format_duration(group.max_drift_us)
        return Step("group", group.name, Action.UPDATE, f"max_drift {before} → {after}", {"max_drift": after})
    stale = [s.name for s in there.group.streams if s.name in streams and streams[s.name].stream != s]
    if stale:
        detail = (
            f"generation {there.generation} reads {', '.join(stale)} as before the last change; "
            f"take it over with skyband groups regenerate {group.name}"
        )
    return Step("group", group.name, Action.KEEP, detail)


def _group_words(spec: GroupSpec) -> dict[str, str]:
    return {
        "streams": ",".join(spec.streams),
        "retention": format_duration(spec.retention_us),
        "retention-rows": str(spec.retention_rows),
        "pane": format_duration(spec.pane_us),
        "shards": str(spec.shards),
    }


def _query(group: Group, query: Query, there: QueryResource | None) -> Step:
    path = f"{group.name}/{query.name}"
    if there is None:
        made = plan(group, query)
        detail = f"plan {made.algorithm}: {made.reason} (skyband queries explain {path})"
        return Step("query", query.name, Action.CREATE, detail)
    wanted, found = dump_query(query), dump_query(there.query)
    differing = [key for key in wanted if key != "k" and wanted[key] != found[key]]
    if differing:
        differences = ", ".join(f"{key} {_words(found[key])}, not {_words(wanted[key])}" for key in differing)
        raise ConflictError(
            f"query {path!r} is there with {differences}; one that asks something else is another query: give it "
            f"another name, or remove this one (skyband queries delete {path}) and apply again"
        )
    if there.query.k != query.k:
        return Step("query", query.name, Action.UPDATE, f"k {there.query.k:,} → {query.k:,}", {"k": query.k})
    detail = f"plan {there.plan.algorithm}"
    if there.state is QueryState.PAUSED:
        detail = f"paused; go on with skyband queries resume {path}"
    return Step("query", query.name, Action.KEEP, detail)


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_words(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_words, value)) + "]"
    return "nothing" if value in (None, "") else f"{value:g}" if isinstance(value, float) else str(value)


# --- doing it


def _create_stream(client: Client, stream: Stream, dry_run: bool) -> None:
    options = dump_stream(stream)
    name = options.pop("name")
    client.create_stream(name, validate_only=dry_run, **options)


def _do_group(client: Client, group: Group, step: Step, begin: Start, dry_run: bool) -> GroupResource:
    match step.action:
        case Action.CREATE:
            spec = GroupSpec.of(group)
            return client.create_group(
                spec.name,
                begin=begin,
                validate_only=dry_run,
                streams=spec.streams,
                retention=format_duration(spec.retention_us),
                retention_rows=spec.retention_rows,
                pane=format_duration(spec.pane_us),
                shards=spec.shards,
                max_drift=format_duration(spec.max_drift_us),
            )
        case Action.UPDATE if not dry_run:
            return client.update_group(step.name, max_drift=step.changes["max_drift"])
        case _:
            return client.get_group(step.name)


def _do_query(client: Client, group: Group, query: Query, step: Step, dry_run: bool) -> Step:
    path = f"{group.name}/{query.name}"
    if step.action is Action.UPDATE and not dry_run:
        client.update_query(path, k=query.k)
    if step.action is not Action.CREATE or dry_run:
        return step
    options = dump_query(query)
    window = options.pop("window")
    for key in ("kind", "name", "k", "score"):
        options.pop(key)
    size = window["count"] if "count" in window else window["size"]
    made = client.create_query(
        group.name, name=query.name, k=query.k, score=query.score, window=size, slide=window["slide"], **options
    ).resource.plan
    return replace(step, detail=f"plan {made.algorithm}: {made.reason} (skyband queries explain {path})")


def _with_partitions(step: Step, group: GroupResource | None) -> Step:
    """Return the step of a stream with the number of its topic's partitions, if it is known."""
    partitions = 0 if group is None else sum(source.stream == step.name for source in group.sources)
    if not partitions:
        return step
    topic, form = step.detail.rsplit(", ", 1)
    return replace(step, detail=f"{topic}, {count(partitions, 'partition')}, {form}")
