"""``python -m spark.pipeline``: align, shards and merge of a group on Spark; see docs/spark-pipeline.md."""

import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from services.runtime import topics
from services.runtime.codecs import Codecs
from services.runtime.kafka_log import KafkaLog
from services.runtime.settings import read_kafka_settings
from skyband.cli.commands import examples
from skyband.cli.failures import INTERRUPTED, run_as_command
from skyband.cli.figures import count
from skyband.errors import DefinitionError
from skyband.model.duration import format_duration, parse_duration
from spark.pipeline_group import find_group, plan_of_definitions, plan_of_group
from spark.pipeline_plan import PipelinePlan
from spark.pipeline_query import SESSION, Pipeline, PipelineSettings
from spark.progress import WorkProgress
from spark.session import session_for

__all__ = ["app", "main"]

HELP = """Run a group on Spark: its source topics in, its results out, as align, engine and fanout would write them.

What it runs is a group of the catalog with all its queries, now and later, or what a file defines. State is in the
checkpoint folder: stopped, killed and started again, it goes on. It runs until it is stopped, until the group begins a
new generation, or with --available-now until all is read that is there. Kafka is reached as services do, by
SKYBAND_KAFKA_… in the environment. It must not run beside a fanout that merges the same group."""
EXAMPLES = examples(
    "python -m spark.pipeline --group factory --checkpoint /data/pipeline",
    "python -m spark.pipeline --definitions factory.yaml --checkpoint /data/pipeline --max-offsets 500000",
    "python -m spark.pipeline --group factory --checkpoint /data/pipeline --available-now",
    'spark-submit --jars "$(python -m spark.jars)" spark/submit.py pipeline --group factory '
    "--checkpoint s3a://bucket/pipeline --trigger 5s",
)

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(help=HELP, epilog=EXAMPLES)
def pipeline(
    checkpoint: Annotated[
        str, typer.Option(help="Folder of the state, one below it for each generation.", metavar="URI")
    ],
    group: Annotated[str | None, typer.Option(help="A group of the catalog.", metavar="NAME")] = None,
    definitions: Annotated[
        Path | None, typer.Option(help="A file with a group and its queries, for a group without control.")
    ] = None,
    trigger: Annotated[
        str, typer.Option(help="How often to take what has come; 0s: again and again.", metavar="DURATION")
    ] = "1s",
    available_now: Annotated[bool, typer.Option("--available-now", help="Take what is there, and end.")] = False,
    max_offsets: Annotated[
        int | None, typer.Option(help="Most source records in one micro-batch.", metavar="N", min=1)
    ] = None,
) -> None:
    """Run the command."""
    if (group is None) == (definitions is None):
        raise DefinitionError("give either --group or --definitions")
    log = KafkaLog(read_kafka_settings(), Codecs())
    topics.apply(log)
    plan = plan_of_group(log, find_group(log, group)) if group else plan_of_definitions(log, definitions or Path())
    base = checkpoint if "://" in checkpoint else f"file:{Path(checkpoint).absolute()}"
    _run(
        log,
        plan,
        PipelineSettings(
            checkpoint=f"{base}/{plan.name}",
            trigger_us=_trigger(trigger),
            available_now=available_now,
            max_offsets=max_offsets,
        ),
    )


def _run(log: KafkaLog, plan: PipelinePlan, settings: PipelineSettings) -> None:
    stop = threading.Event()
    with session_for(f"skyband pipeline {plan.name}", SESSION) as session, WorkProgress("pipeline") as progress:

        def told(pipeline: Pipeline) -> None:
            age = (
                "" if pipeline.age_s is None else f", frontier {format_duration(round(pipeline.age_s) * 1_000_000)} old"
            )
            progress.work = f"pipeline {plan.name}{age}, {count(pipeline.results, 'result')}"
            progress.update(pipeline.rows)

        before = signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
        running = Pipeline(session, log, plan, settings, told=told)
        try:
            running.run(stop)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        finally:
            signal.signal(signal.SIGTERM, before)
    ended = f"; {running.ended}" if running.ended else ""
    sys.stderr.write(f"read {count(running.rows, 'row')}, wrote {count(running.results, 'result')}{ended}\n")


def _trigger(text: str) -> int:
    try:
        return 0 if text in ("0", "0s") else parse_duration(text)
    except DefinitionError as error:
        error.place = f"--trigger {text}"
        raise


def main(arguments: Sequence[str]) -> None:
    """Run the pipeline that the arguments name."""
    app(list(arguments), prog_name="python -m spark.pipeline")


if __name__ == "__main__":
    sys.exit(run_as_command(main, sys.argv[1:]))
