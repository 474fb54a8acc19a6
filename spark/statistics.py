"""``python -m spark.statistics``: the sketches over any range, and a report of them; see docs/statistics.md."""

import json
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from services.runtime.codecs import Codecs
from services.runtime.kafka_log import KafkaLog
from services.runtime.settings import read_kafka_settings
from skyband.align.topics import aligned_topic
from skyband.cli.commands import examples
from skyband.cli.failures import INTERRUPTED, run_as_command
from skyband.errors import DefinitionError
from skyband.model.duration import parse_duration
from skyband.model.resources import GroupResource
from skyband.sketch.publication import Publication, newest_publications
from spark.archive_store import ArchiveStore
from spark.progress import WorkProgress
from spark.session import session_for
from spark.statistics_finding import Finding, Run, as_document, find, print_finding
from spark.statistics_job import (
    SESSION,
    archived_group,
    check_current,
    dated,
    live_group,
    publish,
    sketch_archive,
    sketch_live,
)
from spark.statistics_plan import Range, StatisticsPlan, read_tuning, source_name, time_of
from spark.statistics_shards import STATISTICS_TOPIC
from spark.statistics_stream import StatisticsStream, StreamSettings
from spark.statistics_subsets import read_subset

__all__ = ["app", "main"]

HELP = """Sketch a group's streams over any range: objects, co-appearance, lags, repetition, values.

Rows come from an archive, or from the aligned topic as it is now (--live) or as it grows (--streaming). Without --from
and --to it is the newest window, as long as the group's retention, with the same bytes as the sketch service has. What
is found is published beside the service's own, for `skyband streams stats GROUP --source NAME`. Kafka is reached as
services do, by SKYBAND_KAFKA_… in the environment; sketches are as exact as SKYBAND_SKETCH_BITMAPS and
SKYBAND_SKETCH_SAMPLE_BYTES say."""
EXAMPLES = examples(
    "python -m spark.statistics --group factory --report factory.html",
    "python -m spark.statistics --group factory --archive /data/archive --from 2026-07-01 --to 2026-08-01 --name july",
    "python -m spark.statistics --group factory --subset 'temperature,vibration→noise' --json | jq .subsets",
    "python -m spark.statistics --group factory --archive /data/archive --no-publish --report factory.html",
    "python -m spark.statistics --group factory --streaming --checkpoint /data/statistics --name hourly",
    'spark-submit --jars "$(python -m spark.jars)" spark/submit.py statistics --group factory',
)

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What was asked for, in words."""

    group: str
    generation: int | None
    begin: str | None
    end: str | None
    archive: str | None
    streaming: bool
    available_now: bool
    checkpoint: str | None
    trigger: str
    name: str | None
    subsets: tuple[str, ...]
    publishes: bool

    def check(self, *, live: bool) -> None:
        """Raise DefinitionError for options that do not go together."""
        if self.archive is not None and (live or self.streaming):
            raise DefinitionError("an archive is no live topic: give either --archive or --live and --streaming")
        if self.generation is not None and self.archive is None:
            raise DefinitionError("only an archive has other generations: give --archive with --generation")
        if self.streaming and self.checkpoint is None:
            raise DefinitionError("--streaming needs a folder for its state: give --checkpoint")
        if self.available_now and not self.streaming:
            raise DefinitionError("--available-now goes with --streaming; without both, all that is there is read")
        if self.archive is None and (self.begin is None) != (self.end is None):
            raise DefinitionError("give both --from and --to, or neither; only an archive knows its own ends")


@app.command(help=HELP, epilog=EXAMPLES)
def statistics(
    group: Annotated[str, typer.Option(help="The group.", metavar="GROUP")],
    begin: Annotated[
        str | None, typer.Option("--from", help="First event time: ISO 8601 (UTC without an offset).", metavar="TIME")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", help="Event times lie before it.", metavar="TIME")] = None,
    archive: Annotated[str | None, typer.Option(help="Rows of this archive.", metavar="URI")] = None,
    live: Annotated[bool, typer.Option("--live", help="Rows of the aligned topic; the default.")] = False,
    generation: Annotated[int | None, typer.Option(help="Of the archive; default: its newest.", metavar="N")] = None,
    streaming: Annotated[bool, typer.Option("--streaming", help="Go on as the topic grows, until stopped.")] = False,
    available_now: Annotated[
        bool, typer.Option("--available-now", help="With --streaming: take what is there since last time, and end.")
    ] = False,
    checkpoint: Annotated[
        str | None, typer.Option(help="Folder of the state of --streaming, one below it for each range.", metavar="URI")
    ] = None,
    trigger: Annotated[str, typer.Option(help="How often --streaming publishes.", metavar="DURATION")] = "5s",
    name: Annotated[
        str | None, typer.Option(help="Publish as spark:LABEL; default: the range.", metavar="LABEL")
    ] = None,
    subset: Annotated[
        list[str] | None,
        typer.Option(help="How many objects on a and b come on c too: a,b→c or 'a,b->c'; repeat it.", metavar="SUBSET"),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report to this HTML file.", metavar="FILE")] = None,
    publishes: Annotated[bool, typer.Option("--publish/--no-publish", help="Publish what is found.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of tables.")] = False,
) -> None:
    """Run the command."""
    asked = _Asked(
        group=group,
        generation=generation,
        begin=begin,
        end=end,
        archive=archive if archive is None or "://" in archive else str(Path(archive).absolute()),
        streaming=streaming,
        available_now=available_now,
        checkpoint=checkpoint,
        trigger=trigger,
        name=name,
        subsets=tuple(subset or ()),
        publishes=publishes,
    )
    asked.check(live=live)
    found = _follow(asked) if streaming else _read(asked)
    if report is not None:
        # matplotlib takes a second to load, which only a report is worth.
        from spark.statistics_report import report as page

        report.write_text(page(found, _now_us()), encoding="utf-8")
    if as_json:
        sys.stdout.write(json.dumps(as_document(found), ensure_ascii=False, allow_nan=False) + "\n")
    else:
        print_finding(found)


def _read(asked: _Asked) -> Finding:
    """Sketch what is there, and publish it."""
    log = KafkaLog(read_kafka_settings(), Codecs())
    resource, span = _archived(asked) if asked.archive is not None else _live(asked, log)
    if asked.publishes and asked.archive is not None:
        check_current(resource, live_group(log, asked.group))
    plan = StatisticsPlan.of(resource, source_name(asked.name, str(span or "newest")), span, read_tuning())
    subsets = [read_subset(text, plan.group) for text in asked.subsets]
    with session_for(f"skyband statistics {asked.group}", SESSION) as session, _progress(asked) as progress:

        def told(done: int, of: int) -> None:
            progress.work = f"statistics of {asked.group}, {done} of {of} shards"
            progress.update(0, done / of)

        if asked.archive is not None:
            where, sketched = f"the archive {asked.archive}", sketch_archive(session, plan, asked.archive, told)
        else:
            topic = aligned_topic(asked.group, plan.generation)
            where, sketched = f"topic {topic}", sketch_live(session, log, plan, told)
        progress.update(sketched.rows, 1.0)
    publications = dated(sketched.publications, _now_us())
    if asked.publishes:
        publish(log, publications)
    run = Run(where=where, rows=sketched.rows, repeats=sketched.repeats, seconds=sketched.seconds)
    return find(plan, publications, subsets, run)


def _follow(asked: _Asked) -> Finding:
    """Sketch the topic as it grows; return what is known in the end."""
    log = KafkaLog(read_kafka_settings(), Codecs())
    resource, span = _live(asked, log)
    plan = StatisticsPlan.of(resource, source_name(asked.name, str(span or "streaming")), span, read_tuning())
    subsets = [read_subset(text, plan.group) for text in asked.subsets]
    assert asked.checkpoint is not None
    base = asked.checkpoint if "://" in asked.checkpoint else f"file:{Path(asked.checkpoint).absolute()}"
    part = "newest" if span is None else f"{span.from_us}-{span.to_us}"
    settings = StreamSettings(
        checkpoint=f"{base}/{asked.group}.{plan.generation}/{plan.source.replace(':', '-')}/{part}",
        trigger_us=_duration(asked.trigger),
        available_now=asked.available_now,
        publishes=asked.publishes,
    )
    began_s = time.monotonic()
    stop = threading.Event()
    with session_for(f"skyband statistics {asked.group}", SESSION) as session, _progress(asked) as progress:
        stream = StatisticsStream(session, log, plan, settings, told=lambda its: progress.update(its.rows))
        before = signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
        try:
            stream.run(stop)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        finally:
            signal.signal(signal.SIGTERM, before)
    if stream.ended:
        sys.stderr.write(f"{stream.ended}\n")
    topic = aligned_topic(asked.group, plan.generation)
    run = Run(where=f"topic {topic}", rows=stream.rows, repeats=stream.repeats, seconds=time.monotonic() - began_s)
    return find(plan, _known(log, plan, stream), subsets, run)


def _known(log: KafkaLog, plan: StatisticsPlan, stream: StatisticsStream) -> list[Publication]:
    """Return the newest publications of all shards: those of this run, and of shards that had nothing new in it."""
    found = newest_publications(
        log, STATISTICS_TOPIC, plan.group.name, plan.generation, range(plan.group.shards), plan.source
    )
    return list({**found, **stream.publications}.values())


def _archived(asked: _Asked) -> tuple[GroupResource, Range | None]:
    assert asked.archive is not None
    store = ArchiveStore(asked.archive)
    resource = archived_group(store, asked.archive, asked.group, asked.generation)
    if asked.begin is None and asked.end is None:
        return resource, None
    oldest_us, newest_us = store.span(asked.group, resource.generation)
    from_us = oldest_us if asked.begin is None else time_of(asked.begin, "--from")
    return resource, Range(from_us, newest_us + 1 if asked.end is None else time_of(asked.end, "--to"))


def _live(asked: _Asked, log: KafkaLog) -> tuple[GroupResource, Range | None]:
    span = None
    if asked.begin is not None and asked.end is not None:
        span = Range(time_of(asked.begin, "--from"), time_of(asked.end, "--to"))
    return live_group(log, asked.group), span


def _progress(asked: _Asked) -> WorkProgress:
    return WorkProgress(f"statistics of {asked.group}")


def _duration(text: str) -> int:
    try:
        return parse_duration(text)
    except DefinitionError as error:
        error.place = f"--trigger {text}"
        raise


def _now_us() -> int:
    return int(time.time() * 1e6)


def main(arguments: Sequence[str]) -> None:
    """Make statistics as the arguments say."""
    app(list(arguments), prog_name="python -m spark.statistics")


if __name__ == "__main__":
    sys.exit(run_as_command(main, sys.argv[1:]))
