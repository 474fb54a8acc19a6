"""What tasks of the statistics job make of archives and logs is what the service makes of the same rows."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skyband.coverage.aligned_batch import AlignedBatch
from skyband.errors import CoverageGapError, DefinitionError
from skyband.model.duration import MIN_TIME_US
from skyband.sketch.publication import Publication
from skyband.sketch.settings import SketchTuning
from spark.statistics_finding import Run, as_document, find
from spark.statistics_plan import Range, StatisticsPlan, read_tuning, source_name, time_of
from spark.statistics_shards import STATISTICS_TOPIC, codecs, go_on, sketch_archived, sketch_records
from spark.statistics_subsets import read_subset
from tests.spark.statistics_logs import (
    BEGIN_US,
    GROUP,
    RESOURCE,
    SHARDS,
    TUNING,
    S,
    aligned_logs,
    archived,
    as_published,
    rows_within,
    shard_numbers,
    sketched_by_hand,
    sketched_by_service,
)

RUN = Run(where="the archive", rows=1, repeats=0, seconds=1.0)
SOURCE = "spark:test"


@pytest.fixture(scope="module")
def logs() -> list[list[AlignedBatch]]:
    return aligned_logs()


@pytest.fixture(scope="module")
def archive(logs: list[list[AlignedBatch]], tmp_path_factory: pytest.TempPathFactory) -> str:
    return archived(str(tmp_path_factory.mktemp("archive")), logs)


def plan_of(span: Range | None = None, tuning: SketchTuning = TUNING) -> StatisticsPlan:
    return StatisticsPlan.of(RESOURCE, SOURCE, span, tuning)


def publications(reports: Sequence[pa.RecordBatch]) -> list[Publication]:
    found = []
    for report in reports:
        (row,) = report.to_pylist()
        assert row["error"] is None
        made = codecs().decode(STATISTICS_TOPIC, row["publication"])
        assert isinstance(made, Publication)
        found.append(made)
    return found


def records(log: Sequence[AlignedBatch], size: int = 7) -> list[pa.RecordBatch]:
    values = [codecs().encode("aligned.factory.1", batch) for batch in log]
    return [
        pa.RecordBatch.from_pydict(
            {
                "partition": pa.array([log[0].shard] * len(part), pa.int32()),
                "offset": pa.array(range(low, low + len(part)), pa.int64()),
                "value": pa.array(part, pa.binary()),
            }
        )
        for low in range(0, len(values), size)
        if (part := values[low : low + size])
    ]


def test_the_newest_window_has_the_bytes_of_the_service(logs: list[list[AlignedBatch]], archive: str) -> None:
    expected = [as_published(its, SOURCE) for its in sketched_by_service(logs).values()]
    assert len(expected) == SHARDS
    assert publications(list(sketch_archived(plan_of(), archive, iter(shard_numbers(0, 1))))) == expected
    for number, log in enumerate(logs):
        (report,) = sketch_records(plan_of(), {number: 0}, iter(records(log)))
        assert publications([report]) == [expected[number]]
        (row,) = report.to_pylist()
        assert row["repeats"] > 0


def test_repeats_in_the_log_change_nothing(logs: list[list[AlignedBatch]]) -> None:
    once = [[batch for batch in log if batch.writer != "zombie"] for log in logs]
    found, expected = sketched_by_service(logs), sketched_by_service(once)
    for number, log in enumerate(once):
        (made,) = publications(list(sketch_records(plan_of(), {number: 0}, iter(records(log)))))
        with_repeats = found[number]
        assert len(log) < len(logs[number])
        assert replace(made, aligned_offset=with_repeats.aligned_offset) == as_published(with_repeats, SOURCE)
        assert made == as_published(expected[number], SOURCE)


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 200), (20 * S, 50 * S), (20 * S + 1, 50 * S - 1), (9 * S, 400 * S), (33 * S, 33 * S + 1), (-(10**12), 10**12)],
)
def test_a_range_has_the_bytes_of_a_shard_that_was_fed_its_rows_by_hand(
    logs: list[list[AlignedBatch]], archive: str, low: int, high: int
) -> None:
    span = Range(BEGIN_US + low, BEGIN_US + high)
    plan = plan_of(span)
    expected = [sketched_by_hand(plan, log, span) for log in logs]
    assert publications(list(sketch_archived(plan, archive, iter(shard_numbers(0, 1))))) == expected
    for number, log in enumerate(logs):
        assert publications(list(sketch_records(plan, {number: 0}, iter(records(log))))) == [expected[number]]
    told = find(plan, expected, (), RUN).statistics
    rows = rows_within(logs, span)
    assert sum(told.observations) == len(rows)
    assert told.observations[0] == sum(stream == 0 for stream, _, _ in rows)


def test_a_shard_kept_after_any_record_goes_on_as_if_it_had_not_been(logs: list[list[AlignedBatch]]) -> None:
    for log in logs:
        values = [codecs().encode("aligned.factory.1", batch) for batch in log]
        for span in (None, Range(BEGIN_US + 10 * S, BEGIN_US + 70 * S)):
            plan = plan_of(span)
            throughout = go_on(plan, log[0].shard, None, 0, enumerate(values))
            standing: bytes | None = None
            rows = 0
            for offset, value in enumerate(values):
                step = go_on(plan, log[0].shard, standing, 0, [(offset, value)])
                standing, rows = step.standing, rows + step.rows
                if offset == 0:
                    # Nothing is published before the first row, but the shard knows where it stands.
                    assert step.publication is None
            assert step.publication == throughout.publication == standing
            assert rows == throughout.rows > 0
            # What it has taken already is left out.
            again = go_on(plan, log[0].shard, standing, 0, enumerate(values))
            assert (again.standing, again.rows, again.repeats) == (standing, 0, 0)


def test_a_log_whose_beginning_is_gone_is_sketched_from_where_it_begins(logs: list[list[AlignedBatch]]) -> None:
    log = logs[0]
    values = [codecs().encode("aligned.factory.1", batch) for batch in log]
    step = go_on(plan_of(), 0, None, 12, list(enumerate(values))[12:])
    assert step.publication is not None
    assert 0 < step.rows < sum(batch.rows for batch in log)


def test_a_gap_is_reported_and_ends_its_shard_alone(logs: list[list[AlignedBatch]]) -> None:
    broken = [batch for place, batch in enumerate(logs[0]) if not 8 <= place < 12]
    whole = records(logs[1])
    reports = list(sketch_records(plan_of(), {0: 0, 1: 0}, iter([*records(broken), *whole])))
    rows = [report.to_pylist()[0] for report in reports]
    assert [row["shard"] for row in rows] == [0, 1]
    assert "are missing from the aligned log of group 'factory'" in rows[0]["error"]
    assert (rows[0]["publication"], rows[1]["error"]) == (None, None)
    values = [(number, codecs().encode("aligned.factory.1", batch)) for number, batch in enumerate(broken)]
    with pytest.raises(CoverageGapError):
        go_on(plan_of(), 0, None, 0, values)


def test_an_archive_without_some_files_says_so(logs: list[list[AlignedBatch]], tmp_path: Path) -> None:
    folder = archived(str(tmp_path), logs, commits=1)
    for file in Path(folder).rglob("rows/**/*.parquet"):
        file.unlink()
    (report,) = sketch_archived(plan_of(), folder, iter(shard_numbers(0)))
    assert report.to_pylist()[0]["error"]


# --- ranges


@given(st.integers(-(10**15), 10**15), st.integers(1, 10**14), st.sampled_from([1, 1_000, S, 7 * S]))
@settings(max_examples=200)
@example(BEGIN_US, 3_600 * S, S)
def test_the_window_of_a_range_holds_it_in_at_most_60_panes(from_us: int, length_us: int, pane_us: int) -> None:
    span = Range(from_us, from_us + length_us)
    group = span.of(replace(GROUP, pane_us=pane_us, retention_us=60 * pane_us))
    shape = StatisticsPlan(group=group, generation=1, source=SOURCE, starts={}).shard(0, 0).sketch.shape
    assert (shape.window_us, shape.pane_us) == (group.retention_us, group.pane_us)
    assert shape.window_us <= 60 * shape.pane_us
    end_us = ((span.to_us - 1) // shape.pane_us + 1) * shape.pane_us
    assert end_us - shape.window_us <= from_us < end_us - shape.window_us + shape.pane_us
    assert shape.pane_us % pane_us == 0
    assert shape.pane_us <= max(pane_us, -(-length_us // (59 * pane_us)) * pane_us)


def test_an_hour_has_panes_of_a_minute() -> None:
    group = Range(BEGIN_US, BEGIN_US + 3_600 * S).of(GROUP)
    assert (group.pane_us, group.retention_us) == (60 * S, 3_600 * S)


def test_times_and_names_are_checked_and_ranges_are_written_as_they_are_typed() -> None:
    assert time_of("2026-07-18T14:00:00+02:00", "--from") == time_of("2026-07-18T12:00:00", "--from") == BEGIN_US
    assert time_of(str(BEGIN_US), "--from") == BEGIN_US
    assert str(Range(BEGIN_US, BEGIN_US + S // 2)) == "2026-07-18T12:00:00Z..2026-07-18T12:00:00.500000Z"
    assert source_name(None, str(Range(0, S))) == "spark:1970-01-01T00:00:00Z..1970-01-01T00:00:01Z"
    assert source_name("july", "newest") == "spark:july"
    for wrong in ("soon", "2026-13-01", "", str(2**62)):
        with pytest.raises(DefinitionError, match="is no time such as"):
            time_of(wrong, "--to")
    for name in ("a/b", "", "x" * 64, "é"):
        with pytest.raises(DefinitionError, match="is no name"):
            source_name(name, "newest")
    with pytest.raises(DefinitionError, match="is no range; --from must lie before --to"):
        Range(S, S)


def test_how_exact_sketches_are_is_what_the_service_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_tuning() == SketchTuning()
    monkeypatch.setenv("SKYBAND_SKETCH_BITMAPS", "128")
    assert read_tuning().bitmaps == 128
    monkeypatch.setenv("SKYBAND_SKETCH_BITMAPS", "100")
    with pytest.raises(DefinitionError, match="100 is no power of two"):
        read_tuning()


# --- subsets


def test_chances_of_subsets_are_counts_when_all_objects_are_sampled() -> None:
    logs = aligned_logs(seed=5, objects=400, rows=24)
    span = Range(BEGIN_US, BEGIN_US + 200 * S)
    plan = plan_of(span, SketchTuning(sample_bytes=200_000))
    made = [sketched_by_hand(plan, log, span) for log in logs]
    asked = [read_subset(text, GROUP) for text in ("heat,noise→spots", "spots->heat", " noise , spots → heat ")]
    found = find(plan, made, asked, RUN)
    assert found.statistics.statistics.rate == 1.0
    seen: dict[int, dict[int, int]] = {}
    born: dict[int, int] = {}
    for (stream, _, _), (object_hash, time_us) in rows_within(logs, span).items():
        seen.setdefault(object_hash, {})[stream] = max(time_us, seen.get(object_hash, {}).get(stream, MIN_TIME_US))
        born[object_hash] = min(time_us, born.get(object_hash, time_us))
    at_us = found.statistics.statistics.at_us
    checked = 0
    for its, told in found.subsets:
        assert told is not None
        typical = 0
        for one in its.given:
            lags = sorted(abs(t[its.stream] - t[one]) for t in seen.values() if one in t and its.stream in t)
            # The 0.95 quantile: the first that is not below as large a share.
            typical = max(typical, lags[-(-95 * len(lags) // 100) - 1])
        typical = min(typical, found.statistics.statistics.window_us // 2)
        counted = [t for o, t in seen.items() if set(its.given) <= t.keys() and born[o] <= at_us - typical]
        assert told.objects == len(counted) >= 30
        assert told.probability == sum(its.stream in t for t in counted) / len(counted)
        checked += told.probability < 1.0
    assert checked
    document = as_document(found)
    assert document["subsets"][0]["given"] == ["heat", "noise"]
    assert document["subsets"][0]["appearance"]["objects"] == found.subsets[0][1].objects  # type: ignore[union-attr]
    assert document["range"] == {"from": span.from_us, "to": span.to_us}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("heat", "is no subset; write for example"),
        ("heat→noise→spots", "is no subset"),
        ("heat,cold→noise", "'cold' is not a stream of group 'factory'"),
        ("heat,noise→heat", "asks for a stream that is given"),
        ("→heat", "'' is not a stream"),
    ],
)
def test_a_subset_that_is_none_is_named(text: str, said: str) -> None:
    with pytest.raises(DefinitionError) as raised:
        read_subset(text, GROUP)
    assert str(raised.value).startswith(f"--subset {text}: ")
    assert said in str(raised.value)
