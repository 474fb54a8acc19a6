"""``skyband serve``, ``produce``, ``dead-letters`` and ``doctor``: what needs Kafka runs as a process of `services`."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from skyband.cli.commands import examples, family
from skyband.cli.contexts import chosen_context
from skyband.cli.failures import wrong_option
from skyband.cli.options import given as options_given
from skyband.cli.remote import ContextOption, FormOption, ServerOption
from skyband.cli.replay import FORMATS
from skyband.cli.services import become, given
from skyband.errors import DefinitionError

__all__ = [
    "DOCTOR_EXAMPLES",
    "DOCTOR_HELP",
    "DOCTOR_SHORT",
    "LETTERS_EXAMPLES",
    "PRODUCE_EXAMPLES",
    "PRODUCE_HELP",
    "PRODUCE_SHORT",
    "SERVE_EXAMPLES",
    "SERVE_HELP",
    "SERVE_SHORT",
    "dead_letters_app",
    "doctor",
    "produce",
    "serve",
]

PARTS = ("align", "engine", "fanout", "control")

SERVE_HELP = """Run all of Skyband in one process, on a Kafka that is there: the small deployment.

It makes its own topics, serves control and results at one address, and logs to stderr until it is stopped. All
settings of Kafka's clients are SKYBAND_KAFKA_… in the environment. Needs a checkout of Skyband or its image."""
SERVE_SHORT = "Run all of Skyband in one process, on your Kafka."
SERVE_EXAMPLES = examples(
    "skyband serve --kafka localhost:9092",
    "skyband serve --kafka kafka-1:9092,kafka-2:9092 --listen 0.0.0.0:50051 --create-topics 6",
)

PRODUCE_HELP = """Write rows to the source topics of a group, from files or made up.

Files are as for replay. Rows go out merged by time, at --rate rows a second, or with event time passing --speed times
faster than time, else as fast as Kafka takes them. With --generate objects come again and again on all streams; say
with --skew, --values, --correlation, --bursts, --drift and --cycle what they are like."""
PRODUCE_SHORT = "Write rows to the source topics of a group."
PRODUCE_EXAMPLES = examples(
    "skyband produce --definitions flights.yaml --input 2013-07.csv.gz --speed 600",
    "skyband produce --group factory --generate --rate 5000",
    "skyband produce --group factory --generate --skew 1 --values zipf --correlation 0.8",
    "skyband produce --group factory --generate --bursts 10 --drift 1h --cycle 1d",
    "skyband produce --definitions factory.yaml --input rows.jsonl --create-topics 6",
)

DOCTOR_HELP = """Check a running Skyband from Kafka to results, and say what is wrong and what to do.

Checks the broker, Skyband's topics, each group's source topics, how far align, engine and fanout are behind, and for
each query why it has no new result. Name parts to check those alone. Exits with 1 if something is wrong."""
DOCTOR_SHORT = "Check a running Skyband; say what is wrong, and what to do."
DOCTOR_EXAMPLES = examples(
    "skyband doctor", "skyband doctor align", "skyband doctor -o json | jq 'select(.level == \"wrong\")'"
)

LETTERS_EXAMPLES = examples(
    "skyband dead-letters tail",
    "skyband dead-letters tail --stream vibration -n 100 -o json",
    "skyband dead-letters tail --follow",
)

KafkaOption = Annotated[
    str | None,
    typer.Option("--kafka", help="Brokers, instead of the context's [$SKYBAND_KAFKA_BOOTSTRAP].", metavar="HOST:PORT"),
]


def kafka_settings(kafka: str | None, context: str | None = None, server: str | None = None) -> dict[str, str]:
    """Return what a process of `services` is told of where things are. Raises what `chosen_context` does."""
    chosen = chosen_context(context, server)
    brokers = kafka or os.environ.get("SKYBAND_KAFKA_BOOTSTRAP") or chosen.kafka
    for broker in brokers.split(","):
        host, _, port = broker.strip().rpartition(":")
        if not host or not port.isdigit():
            raise wrong_option(
                DefinitionError("must be HOST:PORT, or several with commas between"), f"--kafka {brokers}"
            )
    found = {"SKYBAND_KAFKA_BOOTSTRAP": brokers}
    return found | options_given(SKYBAND_CONTEXT=context, SKYBAND_SERVER=server)


def serve(
    kafka: KafkaOption = None,
    listen: Annotated[
        str | None,
        typer.Option(help="Where to serve; default 127.0.0.1:50051 [$SKYBAND_LISTEN].", metavar="HOST:PORT"),
    ] = None,
    create_topics: Annotated[
        int | None,
        typer.Option(help="Make source topics that a new group names, with so many partitions.", metavar="N", min=0),
    ] = None,
    context: ContextOption = None,
) -> None:
    """Run the command."""
    settings = kafka_settings(kafka, context)
    settings["SKYBAND_LISTEN"] = listen or os.environ.get("SKYBAND_LISTEN") or "127.0.0.1:50051"
    if create_topics is not None:
        settings["SKYBAND_CONTROL_CREATE_TOPICS"] = str(create_topics)
    become("serve", [], settings)


def produce(
    definitions: Annotated[
        Path | None, typer.Option(help="File of the group.", metavar="FILE", show_default=False)
    ] = None,
    group: Annotated[str | None, typer.Option(help="Or its name, known to control.", metavar="GROUP")] = None,
    inputs: Annotated[
        list[Path] | None, typer.Option("--input", help="Files of rows.", metavar="FILE…", show_default=False)
    ] = None,
    generate: Annotated[bool, typer.Option("--generate", help="Make rows up, until Ctrl-C or --rows.")] = False,
    rate: Annotated[
        float | None,
        typer.Option(help="Rows a second; 0: no limit. Default: none, with --generate 1,000.", metavar="ROWS", min=0.0),
    ] = None,
    speed: Annotated[
        float | None, typer.Option(help="How much faster than time event time passes.", metavar="X", min=0.0)
    ] = None,
    create_topics: Annotated[
        int | None, typer.Option(help="Make missing topics, with so many partitions.", metavar="N", min=1)
    ] = None,
    rows: Annotated[int | None, typer.Option(help="With --generate: end after so many.", metavar="N", min=1)] = None,
    objects: Annotated[
        int | None, typer.Option(help="With --generate: of so many objects; default 1,000.", metavar="N", min=1)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="With --generate: the same rows again.", metavar="N")] = None,
    begin: Annotated[
        str | None, typer.Option(help="With --generate: first event time; default now.", metavar="TIME")
    ] = None,
    skew: Annotated[
        float | None, typer.Option(help="With --generate: the n-th object as often as 1/n^S.", metavar="S", min=0.0)
    ] = None,
    values: Annotated[
        str | None, typer.Option(help="With --generate: uniform (default) or zipf.", metavar="HOW")
    ] = None,
    correlation: Annotated[
        float | None,
        typer.Option(
            help="With --generate: of an object's values on different streams.", metavar="RHO", min=0.0, max=1.0
        ),
    ] = None,
    bursts: Annotated[
        float | None,
        typer.Option(help="With --generate: B times the rate for a tenth of each minute.", metavar="B", min=1.0),
    ] = None,
    drift: Annotated[
        str | None, typer.Option(help="With --generate: in which objects get other values.", metavar="DURATION")
    ] = None,
    cycle: Annotated[
        str | None, typer.Option(help="With --generate: with which values rise and fall.", metavar="DURATION")
    ] = None,
    kafka: KafkaOption = None,
    context: ContextOption = None,
    server: ServerOption = None,
    form: FormOption = None,
) -> None:
    """Run the command."""
    made = {
        "--rows": rows,
        "--objects": objects,
        "--seed": seed,
        "--begin": begin,
        "--skew": skew,
        "--values": values,
        "--correlation": correlation,
        "--bursts": bursts,
        "--drift": drift,
        "--cycle": cycle,
    }
    _check_rows(definitions, group, generate, inputs, made)
    words = {
        "--definitions": definitions,
        "--group": group,
        "--input": inputs,
        "--generate": generate,
        "--rate": rate,
        "--speed": speed,
        "--create-topics": create_topics,
        **made,
        "--output": _form(form),
    }
    become("produce", given(words), kafka_settings(kafka, context, server))


def _check_rows(
    definitions: Path | None,
    group: str | None,
    generate: bool,
    inputs: list[Path] | None,
    made: Mapping[str, object],
) -> None:
    if (definitions is None) == (group is None):
        raise DefinitionError("say of which group: with --definitions FILE, or with --group NAME; one of both")
    if generate == bool(inputs):
        raise DefinitionError("say which rows: those of --input FILE…, or made up with --generate; one of both")
    for option, value in made.items():
        if value is not None and not generate:
            raise DefinitionError("is for --generate; leave it away", place=f"{option} {value}")


dead_letters_app = family("See the records that were not used, and why.")


@dead_letters_app.command(
    "tail",
    help="Show the newest records that were not used: where they are, why, and what they hold.\n\nBad records never "
    "stop a stream; they come here, and stay for a week.",
    short_help="Show the newest records that were not used.",
    epilog=LETTERS_EXAMPLES,
)
def tail(
    number: Annotated[int, typer.Option("-n", "--number", help="How many.", metavar="N", min=0)] = 10,
    stream: Annotated[str | None, typer.Option(help="Of this stream alone.", metavar="STREAM")] = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="All that are kept, the oldest first.")
    ] = False,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on with those to come.")] = False,
    kafka: KafkaOption = None,
    context: ContextOption = None,
    form: FormOption = None,
) -> None:
    """Run the command."""
    words = {
        "--number": number,
        "--stream": stream,
        "--from-beginning": from_beginning,
        "--follow": follow,
        "--output": _form(form),
    }
    become("dead_letters", given(words), kafka_settings(kafka, context))


def doctor(
    parts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[align|engine|fanout|control]…", help="Check these alone.", show_default=False),
    ] = None,
    kafka: KafkaOption = None,
    context: ContextOption = None,
    server: ServerOption = None,
    form: FormOption = None,
) -> None:
    """Run the command."""
    for part in parts or []:
        if part not in PARTS:
            raise DefinitionError(f"is no part of Skyband; parts are {', '.join(PARTS)}", place=part)
    become("doctor", [*(parts or []), *given({"--output": _form(form)})], kafka_settings(kafka, context, server))


def _form(form: str | None) -> str | None:
    if form is not None and form not in FORMATS:
        raise DefinitionError(f"no such format; use {' or '.join(FORMATS)}", place=f"-o {form}")
    return form
