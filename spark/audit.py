"""``python -m spark.audit``: was what we showed right? See docs/audit.md.

==== =======================================================================
code meaning
==== =======================================================================
0    every result is as it should be
1    there are differences
2    asked wrongly, or it cannot be audited (the reason is on stderr)
130  interrupted
==== =======================================================================
"""

import json
import sys
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.console import Console

from services.runtime.codecs import Codecs
from services.runtime.kafka_log import KafkaLog
from services.runtime.settings import read_kafka_settings
from skyband.align.topics import aligned_topic
from skyband.cli.commands import examples
from skyband.cli.failures import INTERRUPTED, WRONGLY_ASKED, sentence
from skyband.cli.figures import count
from skyband.errors import DefinitionError, LogError, NotFoundError, SkybandError
from skyband.log.record_log import Position
from skyband.model.duration import FIRST_EVENT_US, LAST_EVENT_US
from spark.archive_store import ArchiveStore
from spark.audit_catalog import Catalog, read_catalog
from spark.audit_input import AlignedFrames, archived_frames, topic_frames
from spark.audit_job import Audit, Audited
from spark.audit_report import as_document, as_tables, differs
from spark.audit_results import RESULTS_TOPIC, result_frame
from spark.progress import WorkProgress, tasks_watched
from spark.session import session_for

__all__ = ["app", "audit_kafka", "main", "run"]

HELP = """Recompute the results of a past range in Spark SQL, and compare them with those that were written.

Exit code 0: all equal; 1: differences; 2: asked wrongly, or not to be audited. Kafka is reached as services do, by
SKYBAND_KAFKA_… in the environment."""
EXAMPLES = examples(
    "python -m spark.audit --group factory --from 2026-07-18T12:00:00Z --to 2026-07-18T13:00:00Z",
    "python -m spark.audit --group factory --query hottest --from 2026-07-18 --to 2026-07-19 --archive /data/archive",
    "python -m spark.audit --group factory --from 2026-07-18 --to 2026-07-19 --json --output audit.json",
)
# An aligned record may have megabytes.
_SESSION = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
}
_US = 1_000_000
_DIFFERENT = 1

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(help=HELP, epilog=EXAMPLES)
def audit(
    group: Annotated[str, typer.Option(help="The group whose results are audited.", metavar="GROUP")],
    begin: Annotated[
        str, typer.Option("--from", help="First window end: ISO 8601 (UTC without an offset) or us.", metavar="TIME")
    ],
    end: Annotated[str, typer.Option("--to", help="Window ends lie before it.", metavar="TIME")],
    query: Annotated[
        list[str] | None, typer.Option(help="Of this query; may be repeated. Without it, of all.", metavar="QUERY")
    ] = None,
    archive: Annotated[
        str | None, typer.Option(help="Rows from this archive instead of the aligned topic.", metavar="URI")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of tables.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write to a file instead of stdout.", metavar="FILE")] = None,
) -> None:
    """Run the command."""
    from_us, to_us = _time(begin, "--from"), _time(end, "--to")
    if from_us >= to_us:
        raise DefinitionError(f"--from {begin} is not before --to {end}; name a range of window ends")
    with (
        session_for("skyband audit", _SESSION) as session,
        WorkProgress(f"audit of {group}", has_rows=False) as progress,
    ):

        def told(done: int, tasks: int) -> None:
            # Spark plans one stage after another: nobody knows how many there will be.
            progress.work = f"audit of {group}, {done} of {count(tasks, 'task')} of this stage done"
            progress.update(0)

        try:
            with tasks_watched(session, told):
                audited = audit_kafka(session, group, from_us, to_us, query or (), archive)
            progress.work = f"audited group {group}"
        except PySparkException as error:
            raise LogError(f"Spark could not read what is audited: {str(error).splitlines()[0]}") from error
    _write(audited, output, as_json=as_json)
    if differs(audited):
        raise typer.Exit(_DIFFERENT)


def audit_kafka(
    session: SparkSession, group: str, from_us: int, to_us: int, names: Sequence[str] = (), archive: str | None = None
) -> Audited:
    """Audit the results in Kafka of windows that end in [from_us, to_us) against the archive, or the aligned topic.

    Raises as `Audit.run`, and LogError or NotFoundError for what Kafka or the archive does not have.
    """
    kafka = read_kafka_settings()
    log = KafkaLog(kafka, Codecs())
    catalog = read_catalog(log, group)
    frames = _archived(session, archive, catalog) if archive is not None else _in_kafka(session, log, catalog)
    return Audit(catalog, frames, lambda uids: result_frame(session, kafka, uids), _loses(log)).run(
        from_us, to_us, names
    )


def _archived(session: SparkSession, uri: str, catalog: Catalog) -> AlignedFrames:
    store = ArchiveStore(uri)
    group, generation = catalog.group.group.name, catalog.group.generation
    if generation not in store.generations(group):
        raise NotFoundError(
            f"the archive {uri} has nothing of group {group!r}, generation {generation}; run `python -m spark.archive "
            f"--archive {uri} --group {group} --available-now`, or leave --archive away"
        )
    return archived_frames(session, store, group, generation)


def _in_kafka(session: SparkSession, log: KafkaLog, catalog: Catalog) -> AlignedFrames:
    group, generation = catalog.group.group.name, catalog.group.generation
    topic = aligned_topic(group, generation)
    places = [Position(topic, shard) for shard in range(log.partitions(topic))]
    with closing(log.consumer()) as consumer:
        begins, ends = consumer.begin_offsets(places), consumer.end_offsets(places)
    offsets = {at.partition: (begins[at], ends[at]) for at in places}
    return topic_frames(session, log.settings, group, generation, offsets)


def _loses(log: KafkaLog) -> Callable[[str], bool]:
    """Return what says of a uid whether its first results may have been deleted."""
    partitions = log.partitions(RESULTS_TOPIC)
    places = [Position(RESULTS_TOPIC, number) for number in range(partitions)]
    with closing(log.consumer()) as consumer:
        begins = consumer.begin_offsets(places)
    return lambda uid: begins[places[zlib.crc32(uid.encode()) % partitions]] > 0


def _time(text: str, option: str) -> int:
    try:
        if text.lstrip("-").isdigit():
            time_us = int(text)
        else:
            moment = datetime.fromisoformat(text)
            moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
            since = moment - datetime(1970, 1, 1, tzinfo=UTC)
            time_us = (since.days * 86_400 + since.seconds) * _US + since.microseconds
    except ValueError:
        time_us = LAST_EVENT_US
    if not FIRST_EVENT_US < time_us < LAST_EVENT_US:
        raise DefinitionError(
            "is no time such as 2026-07-01T12:00:00Z, nor microseconds since 1970", place=f"{option} {text}"
        )
    return time_us


def _write(audited: Audited, output: Path | None, *, as_json: bool) -> None:
    file = sys.stdout if output is None else output.open("w", encoding="utf-8")
    try:
        if as_json:
            file.write(json.dumps(as_document(audited), ensure_ascii=False, allow_nan=False) + "\n")
        else:
            Console(file=file, width=160 if not file.isatty() else None, highlight=False).print(as_tables(audited))
    finally:
        if output is not None:
            file.close()


def main(arguments: Sequence[str]) -> None:
    """Audit as the arguments say."""
    app(list(arguments), prog_name="python -m spark.audit")


def run(arguments: Sequence[str]) -> int:
    """Run the command and return the exit code: whatever keeps it from auditing is 2, for 1 means differences."""
    try:
        main(arguments)
    except (SkybandError, OSError) as error:
        sys.stderr.write(f"{sentence(error)}\n")
        return WRONGLY_ASKED
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as error:
        return int(error.code or 0)
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
