"""``python -m spark.rebuild``: rebuilds the state of a group from its history; see docs/rebuild.md."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from services.runtime.codecs import Codecs
from services.runtime.kafka_log import KafkaLog
from services.runtime.settings import read_kafka_settings
from skyband.cli.commands import examples
from skyband.cli.failures import run_as_command
from skyband.cli.figures import bytes_of, count
from skyband.errors import DefinitionError
from skyband.files.definitions import load_definitions
from skyband.model.duration import parse_duration
from skyband.model.rebuild import Rebuild
from spark.progress import WorkProgress
from spark.rebuild_job import RebuildJob, RebuildSettings
from spark.rebuild_plan import Wish
from spark.session import session_for

__all__ = ["app", "main"]

HELP = """Rebuild the state of a group from its history: write the aligned log of its next generation.

The group runs on meanwhile. `skyband groups regenerate GROUP --from-rebuild FILE` then goes on from what was made: no
result is missing or written twice. Kafka is reached as services do, by SKYBAND_KAFKA_… in the environment."""
EXAMPLES = examples(
    "python -m spark.rebuild --group factory --shards 8 --output rebuild.json",
    "python -m spark.rebuild --group factory --retention 7d --archive s3://bucket/skyband --output rebuild.json",
    "python -m spark.rebuild --group factory --history sources --definitions factory.yaml --output rebuild.json",
    "python -m spark.rebuild --group factory --shards 8 --output rebuild.json --resume",
    'spark-submit --jars "$(python -m spark.jars)" spark/submit.py rebuild --group factory --shards 8 '
    "--output rebuild.json",
)
HISTORIES = ("aligned", "sources")

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(help=HELP, epilog=EXAMPLES)
def rebuild(
    group: Annotated[str, typer.Option(help="The group.", metavar="GROUP")],
    output: Annotated[Path, typer.Option(help="Where to write what was made, for regenerate.", metavar="FILE")],
    shards: Annotated[int | None, typer.Option(help="How many shards; by default as many as now.", metavar="N")] = None,
    retention: Annotated[
        str | None, typer.Option(help="How long rows are kept; by default as now.", metavar="DURATION")
    ] = None,
    definitions: Annotated[
        Path | None, typer.Option(help="The group as this file defines it, streams and all.", metavar="FILE")
    ] = None,
    archive: Annotated[
        str | None, typer.Option(help="What Kafka holds no more is read from this archive.", metavar="URI")
    ] = None,
    history: Annotated[
        str,
        typer.Option(
            help="aligned: the rows of the aligned log, as they are. sources: source records, read anew as streams are "
            "defined now.",
            metavar="|".join(HISTORIES),
        ),
    ] = "aligned",
    since: Annotated[
        str | None,
        typer.Option(
            help="Leave out rows of earlier event times. By default all are kept; with an archive, those that windows "
            "of results still to be written need.",
            metavar="TIME",
        ),
    ] = None,
    recovery_target: Annotated[
        str,
        typer.Option(help="Shards that would read their log for longer get full snapshots.", metavar="DURATION"),
    ] = "60s",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the rebuild that --output tells of.")] = False,
    discard: Annotated[bool, typer.Option("--discard", help="Delete what an earlier rebuild has written.")] = False,
) -> None:
    """Run the command."""
    if history not in HISTORIES:
        raise DefinitionError(f"is none of {' and '.join(HISTORIES)}", place=f"--history {history}")
    if resume and discard:
        raise DefinitionError("go on with a rebuild, or delete it, not both", place="--resume --discard")
    settings = RebuildSettings(
        wish=Wish(
            group=group,
            shards=shards,
            retention_us=None if retention is None else _duration("retention", retention),
            definitions=None if definitions is None else load_definitions(definitions).group,
        ),
        output=output,
        history=history,
        archive=archive if archive is None or "://" in archive else str(Path(archive).absolute()),
        since_us=None if since is None else _time(since),
        recovery_target_us=_duration("recovery-target", recovery_target),
        resume=resume,
        discard=discard,
    )
    _run(settings)


def _run(settings: RebuildSettings) -> None:
    log = KafkaLog(read_kafka_settings(), Codecs())
    with session_for("skyband rebuild") as session, WorkProgress("rebuild") as progress:

        def told(job: RebuildJob) -> None:
            progress.work = f"rebuild, {job.part}" + (
                f", {count(job.batches, 'batch', 'batches')}" if job.batches else ""
            )
            progress.update(job.rows, job.share)

        job = RebuildJob(session, log, settings, told=told)
        made = job.run()
    for note in job.notes:
        _say(note)
    _say(summary(made))
    _say(f"next: skyband groups regenerate {made.group.name} --from-rebuild {settings.output}")


def summary(made: Rebuild) -> str:
    """Return what was made, in a line."""
    rows = sum(shard.rows for shard in made.shards)
    full = [shard for shard in made.shards if shard.snapshot_at >= 0]
    line = f"rebuilt group {made.group.name}, generation {made.generation}: {count(rows, 'row')} in "
    line += count(len(made.shards), "shard")
    if full:
        size = bytes_of(sum(shard.snapshot_bytes for shard in full))
        line += f", snapshots of {count(len(full), 'shard')} ({size})"
    return line


def _duration(option: str, value: str) -> int:
    try:
        return parse_duration(value)
    except DefinitionError as error:
        error.place = f"--{option} {value}"
        raise


def _time(value: str) -> int:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise DefinitionError("is no time such as 2026-07-01T12:00:00+02:00", place=f"--since {value}") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000_000)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def main(arguments: Sequence[str]) -> None:
    """Rebuild as the arguments say."""
    app(list(arguments), prog_name="python -m spark.rebuild")


if __name__ == "__main__":
    sys.exit(run_as_command(main, sys.argv[1:]))
