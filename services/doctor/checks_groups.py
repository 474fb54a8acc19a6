"""How the stages of one group are doing: its sources, its shards, its merge."""

from collections.abc import Iterator

from services.doctor.facts import GroupFacts, Lag, Reported, SourceTopic
from services.doctor.finding import Finding, Level, Part
from skyband.cli.figures import count, moment, span
from skyband.model.duration import MIN_TIME_US, format_duration
from skyband.model.status import Holder, ShardReport, SourceReport
from skyband.model.stream import IdleThen

__all__ = ["check_align", "check_engine", "check_fanout"]

# Reports come about once a second; who has been silent for so long is not there.
_SILENT_US = 15_000_000
# A source that is further behind, at the rate at which it is read, is behind.
_BEHIND_S = 60.0


def check_align(facts: GroupFacts, now_us: int) -> Iterator[Finding]:
    """Yield how each source of the group is doing; what is well is said once for each stream."""
    for source in facts.topics:
        place = f"{facts.resource.group.name}/{source.stream}"
        wrong = list(_topic(facts, source, place))
        if source.topic_id is not None:
            for partition, lag in enumerate(source.lags):
                report = facts.reports.sources.get((source.stream, partition))
                found = _partition(facts, source, partition, lag, report, now_us)
                if found is not None:
                    wrong.append(found)
        if not any(finding.level is Level.WRONG for finding in wrong):
            unread = sum(_unread(facts, source.stream, n, lag, now_us) or 0 for n, lag in enumerate(source.lags))
            read = f"{count(unread, 'record')} unread" if unread else "read to the end"
            text = f"{place}: topic {source.topic}, {count(len(source.lags), 'partition')}, {read}"
            yield Finding(Part.ALIGN, Level.OK, text)
        yield from wrong


def _topic(facts: GroupFacts, source: SourceTopic, place: str) -> Iterator[Finding]:
    group = facts.resource.group.name
    if source.topic_id is None:
        yield Finding(
            Part.ALIGN,
            Level.WRONG,
            f"{place}: its topic {source.topic} does not exist",
            f"create it, or delete the group; a topic made anew needs skyband groups regenerate {group}",
        )
        return
    starts = [start for start in facts.resource.sources if start.stream == source.stream]
    others = {start.topic_id for start in starts} - {"", source.topic_id}
    if others:
        yield Finding(
            Part.ALIGN,
            Level.WRONG,
            f"{place}: topic {source.topic} was made anew since this generation began",
            f"skyband groups regenerate {group}",
        )
    if starts and len(source.lags) > len(starts):
        more = len(source.lags) - len(starts)
        yield Finding(
            Part.ALIGN,
            Level.NOTE,
            f"{place}: topic {source.topic} has {count(more, 'partition')} more than when this generation began; their "
            "rows count from when they were found",
        )


def _partition(
    facts: GroupFacts,
    source: SourceTopic,
    partition: int,
    lag: Lag,
    report: Reported[SourceReport] | None,
    now_us: int,
) -> Finding | None:
    group = facts.resource.group
    place = f"{group.name}/{source.stream}, partition {partition}"
    if lag.committed is not None and lag.committed < lag.begin:
        return Finding(
            Part.ALIGN,
            Level.WRONG,
            f"{place}: {count(lag.begin - lag.committed, 'record')} were deleted before they were read (offsets "
            f"{lag.committed:,} to {lag.begin - 1:,})",
            f"give topic {source.topic} more retention; to go on without what is lost: skyband groups regenerate "
            f"{group.name}",
        )
    if report is None or now_us - report.time_us > _SILENT_US:
        since = "has not reported" if report is None else f"last reported {span((now_us - report.time_us) / 1e6)} ago"
        if report is not None and report.value.unread_rows == 0 and lag.committed == lag.end:
            return None
        return Finding(
            Part.ALIGN, Level.WRONG, f"{place}: its reader {since}", "see that align runs, and what its log says"
        )
    told = report.value
    if told.paused:
        drift = format_duration(group.max_drift_us)
        return Finding(
            Part.ALIGN, Level.NOTE, f"{place}: paused, more than {drift} ahead of the others (max_drift), and waits"
        )
    if told.unread_rows and told.rows_per_second is not None:
        rate = told.rows_per_second
        if rate == 0 or told.unread_rows / rate > _BEHIND_S:
            behind = f", {span(told.unread_rows / rate)} at this rate" if rate else ""
            return Finding(
                Part.ALIGN,
                Level.WRONG,
                f"{place}: {count(told.unread_rows, 'unread record')}; reader {told.reader} reads {rate:,.0f} "
                f"records/s{behind}",
                "let more processes of align run, up to one for each partition; or see what the reader waits for in "
                "its log",
            )
    return None


def _unread(facts: GroupFacts, stream: str, partition: int, lag: Lag, now_us: int) -> int | None:
    """Return how much is unread as its reader says, else as the commit says."""
    report = facts.reports.sources.get((stream, partition))
    if report is not None and now_us - report.time_us <= _SILENT_US and report.value.unread_rows is not None:
        return report.value.unread_rows
    return None if lag.committed is None else lag.end - max(lag.committed, lag.begin)


def check_engine(facts: GroupFacts, now_us: int) -> Iterator[Finding]:
    """Yield how each shard of the group is doing."""
    group = facts.resource.group
    for shard in range(group.shards):
        place = f"{group.name}, shard {shard} of {group.shards}"
        report = facts.reports.shards.get(shard)
        if report is None or now_us - report.time_us > _SILENT_US:
            since = (
                "has not reported in this generation"
                if report is None
                else f"last reported {span((now_us - report.time_us) / 1e6)} ago"
            )
            do = "see that the engine runs, and what its log says"
            yield Finding(Part.ENGINE, Level.WRONG, f"{place}: {since}", do)
        elif report.value.stopped:
            yield Finding(
                Part.ENGINE,
                Level.WRONG,
                f"{place}: stopped: {report.value.stopped}",
                "bring back what is missing and restart the engine, or accept the loss: "
                f"skyband groups regenerate {group.name}",
            )
        else:
            yield _shard(facts, report.value, place, now_us)


def _shard(facts: GroupFacts, report: ShardReport, place: str, now_us: int) -> Finding:
    if report.frontier_us == MIN_TIME_US:
        holder = "" if report.holder is None else f"; it waits for {_holder(report.holder)}"
        return Finding(Part.ENGINE, Level.NOTE, f"{place}: no row has come of every source yet{holder}")
    at = f"read up to {moment(report.frontier_us, now_us)}, {count(report.objects, 'object')}"
    behind_us = report.newest_us - report.frontier_us
    usual_us = max(stream.max_delay_us for stream in facts.resource.group.streams) + _SILENT_US
    if report.holder is None or behind_us <= usual_us:
        return Finding(Part.ENGINE, Level.OK, f"{place}: {at}")
    stream = facts.resource.group.streams[facts.resource.group.stream_index(report.holder.stream)]
    do = "see skyband doctor align"
    if stream.idle_then is IdleThen.HOLD:
        do = f"stream {stream.name} has idle.then: hold, so all wait for its next row; check its producer"
    return Finding(
        Part.ENGINE,
        Level.NOTE,
        f"{place}: {at}; {_holder(report.holder)} holds it {span(behind_us / 1e6)} of event time behind the newest row",
        do,
    )


def _holder(holder: Holder) -> str:
    return f"stream {holder.stream}, partition {holder.partition}"


def check_fanout(facts: GroupFacts, now_us: int) -> Iterator[Finding]:
    """Yield how the merge of the group is doing."""
    group = facts.resource.group
    shards = [facts.reports.shards.get(shard) for shard in range(group.shards)]
    frontiers = [report.value.frontier_us for report in shards if report is not None]
    if len(frontiers) < group.shards or min(frontiers) == MIN_TIME_US:
        yield Finding(
            Part.FANOUT, Level.NOTE, f"{group.name}: nothing to merge yet: not all shards have come to a time"
        )
        return
    merge, shard_us = facts.reports.merge, min(frontiers)
    if merge is None:
        yield Finding(
            Part.FANOUT,
            Level.NOTE,
            f"{group.name}: no merge has told how far it is in the last hour; it does when results move on",
        )
        return
    behind_us = shard_us - merge.value.frontier_us
    at = f"results up to {moment(merge.value.frontier_us, now_us)}"
    if behind_us > 0 and now_us - merge.time_us > _SILENT_US:
        yield Finding(
            Part.FANOUT,
            Level.WRONG,
            f"{group.name}: {at}, told {span((now_us - merge.time_us) / 1e6)} ago; the shards are at "
            f"{moment(shard_us, now_us)}",
            "see that fanout runs, and what its log says",
        )
    else:
        yield Finding(Part.FANOUT, Level.OK, f"{group.name}: {at}")
