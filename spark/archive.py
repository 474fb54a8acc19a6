"""``python -m spark.archive``: keeps what Kafka forgets; see docs/archive.md."""

import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from services.runtime.codecs import Codecs
from services.runtime.kafka_log import KafkaLog
from services.runtime.registry_settings import RegistrySettings
from services.runtime.settings import read_kafka_settings
from skyband.cli.commands import examples
from skyband.cli.failures import INTERRUPTED, run_as_command
from skyband.cli.figures import count
from skyband.errors import DefinitionError
from skyband.model.duration import parse_duration
from spark.archive_compact import Compaction
from spark.archive_job import SESSION, ArchiveJob, ArchiveSettings
from spark.progress import WorkProgress
from spark.session import session_for

__all__ = ["app", "main"]

HELP = """Archive source and aligned topics of groups to Parquet, by group, shard and event hour.

Each row once, whatever align wrote twice and however often this is started or killed. It runs until it is stopped, or
with --available-now until all is archived that is there. Kafka is reached as services do, by SKYBAND_KAFKA_… in the
environment."""
EXAMPLES = examples(
    "python -m spark.archive --archive /data/archive",
    "python -m spark.archive --archive s3://bucket/skyband --group factory --no-sources --trigger 5m",
    "python -m spark.archive --archive /data/archive --available-now --compact",
    "python -m spark.archive --archive /data/archive --compact",
    'spark-submit --jars "$(python -m spark.jars)" spark/submit.py archive --archive s3://bucket/skyband',
)

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(help=HELP, epilog=EXAMPLES)
def archive(
    archive: Annotated[str, typer.Option(help="A folder, or an address that pyarrow knows.", metavar="URI")],
    group: Annotated[
        list[str] | None, typer.Option(help="Of this group; may be repeated. Without it, of all.", metavar="GROUP")
    ] = None,
    sources: Annotated[bool, typer.Option("--sources/--no-sources", help="Archive source topics too.")] = True,
    available_now: Annotated[bool, typer.Option("--available-now", help="Archive what is there, and end.")] = False,
    trigger: Annotated[str, typer.Option(help="How often to archive what has come.", metavar="DURATION")] = "30s",
    checkpoint: Annotated[
        str | None,
        typer.Option(
            help="Folder for what Spark notes while it runs; by default one that goes at the end. Where to go on is in "
            "the archive itself.",
            metavar="URI",
        ),
    ] = None,
    max_records_per_batch: Annotated[
        int,
        typer.Option(
            help="Most records of a source topic in one commit; of aligned batches N/100.", metavar="N", min=1
        ),
    ] = 2_000_000,
    compact: Annotated[
        bool, typer.Option("--compact", help="Merge small files of finished hours; alone, or after --available-now.")
    ] = False,
) -> None:
    """Run the command."""
    if not compact or available_now:
        with ExitStack() as stack:
            folder = checkpoint or "file:" + stack.enter_context(tempfile.TemporaryDirectory(prefix="skyband-archive-"))
            settings = ArchiveSettings(
                archive=archive if "://" in archive else str(Path(archive).absolute()),
                checkpoint=folder,
                groups=tuple(group or ()),
                with_sources=sources,
                available_now=available_now,
                trigger_us=_trigger(trigger),
                max_records=max_records_per_batch,
                registry=RegistrySettings(),
            )
            _run(settings)
    if compact:
        done = Compaction(archive).run(int(time.time() * 1e6))
        _say(f"compacted {count(done.merged, 'file')} to {done.made:,}, deleted {count(done.deleted, 'file')}")


def _run(settings: ArchiveSettings) -> None:
    stop = threading.Event()
    log = KafkaLog(read_kafka_settings(), Codecs())
    with session_for("skyband archive", SESSION) as session, WorkProgress("archive") as progress:

        def told(job: ArchiveJob) -> None:
            progress.work = "archive" if job.left is None else f"archive, {count(job.left, 'offset')} left"
            progress.update(job.rows)

        before = signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
        job = ArchiveJob(session, log, settings, told=told)
        try:
            job.run(stop)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        finally:
            signal.signal(signal.SIGTERM, before)
    _say(f"archived {count(job.rows, 'row')}, dropped {count(job.repeats, 'repeat')}")


def _trigger(text: str) -> int:
    try:
        return parse_duration(text)
    except DefinitionError as error:
        error.place = f"--trigger {text}"
        raise


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def main(arguments: Sequence[str]) -> None:
    """Archive as the arguments say."""
    app(list(arguments), prog_name="python -m spark.archive")


if __name__ == "__main__":
    sys.exit(run_as_command(main, sys.argv[1:]))
