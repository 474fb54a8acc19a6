"""``skyband streams stats``: tables for people, a document for programs."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from skyband.cli import statistics
from skyband.cli.statistics import print_statistics, statistics_document
from skyband.model.published_statistics import PublishedStatistics
from skyband.model.statistics import Appearance, Estimate, GroupStatistics, PairStatistics, StreamStatistics
from tests.cli.remote import Ask, Deployment, ask, deployment, documents

__all__ = ["ask", "deployment"]

S = 1_000_000
STREAM = StreamStatistics(
    cardinality=Estimate(1_240.4, 105.2),
    second_moment=Estimate(30_000.0, 2_700.0),
    repetition_bound=188.2,
    value_quantiles=((1.0, 2.0, 3.0, 4.0, 5.0),),
)
FOUND = PublishedStatistics(
    group="factory",
    generation=2,
    streams=("temperature", "vibration", "noise"),
    attributes=(("temperature",), ("vibration",), ("noise",)),
    observations=(12_400, 800, 0),
    from_us=0,
    published_us=1_700_000_000 * S,
    source="service",
    silent_shards=(1, 3),
    statistics=GroupStatistics(
        at_us=3_600 * S,
        window_us=600 * S,
        rate=0.125,
        sampled_objects=155,
        streams=(STREAM, STREAM, replace(STREAM, value_quantiles=())),
        pairs=(
            PairStatistics(0, 1, Appearance(0.25, 0.02, 130), (-S, 200_000, 2 * S)),
            PairStatistics(0, 2, None, ()),
            PairStatistics(1, 0, Appearance(1.0, 0.0, 40), (-2 * S, -200_000, S)),
            PairStatistics(1, 2, None, ()),
            PairStatistics(2, 0, None, ()),
            PairStatistics(2, 1, None, ()),
        ),
    ),
)


def printed(capsys: pytest.CaptureFixture[str], found: PublishedStatistics = FOUND) -> list[list[str]]:
    print_statistics(found)
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_a_line_for_each_stream_and_a_share_for_each_pair(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys)
    assert lines[0] == ["stream", "objects", "±", "error", "observations", "most", "often", "lag", "to", "others"]
    assert lines[1] == ["temperature", "1,240", "105", "12,400", "≤", "188", "−200", "ms"]
    assert lines[2][-2:] == ["+200", "ms"]
    assert lines[3][-3:] == ["0", "–", "?"]
    head = lines.index(["temperature", "vibration", "noise"])
    assert lines[head + 1 : head + 4] == [
        ["temperature", "·", "0.25", "?"],
        ["vibration", "1.00", "·", "?"],
        ["noise", "?", "?", "·"],
    ]
    text = "\n".join(" ".join(line) for line in lines)
    assert "window of 10m up to" in text
    assert "155 objects sampled (1 in 8)" in text
    assert "published nothing yet: 1, 3" in text
    assert "begins at" not in text


def test_a_window_that_is_not_full_yet_says_since_when(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, replace(FOUND, from_us=3_500 * S))
    assert any("begins" in line for line in lines)


def test_one_stream_shares_objects_with_none(capsys: pytest.CaptureFixture[str]) -> None:
    alone = replace(
        FOUND,
        streams=("temperature",),
        attributes=FOUND.attributes[:1],
        observations=FOUND.observations[:1],
        statistics=replace(FOUND.statistics, streams=(STREAM,), pairs=()),
    )
    lines = printed(capsys, alone)
    assert lines[1][-1] == "–"
    assert ["·"] not in lines


def test_on_a_terminal_shares_are_shaded(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system="truecolor", width=100)
    monkeypatch.setattr(statistics, "Console", lambda **_: console)
    print_statistics(FOUND)
    cells = [part for part in out.getvalue().split("\x1b[") if ";2;" in part]
    assert [cell.split("m ", 1)[1].strip() for cell in cells] == ["0.25", "1.00"]
    assert "48;2;255;176;64" in cells[1]


def test_the_document_has_everything() -> None:
    document = statistics_document(FOUND)
    assert document["streams"][0]["objects"] == {"value": 1_240.4, "error": 105.2}
    assert document["streams"][0]["attributes"] == {
        "temperature": {"0.05": 1.0, "0.25": 2.0, "0.5": 3.0, "0.75": 4.0, "0.95": 5.0}
    }
    assert document["streams"][2]["attributes"] == {}
    assert document["pairs"][0] == {
        "given": "temperature",
        "stream": "vibration",
        "appearance": {"value": 0.25, "error": 0.02, "objects": 130},
        "lag_us": {"0.05": -S, "0.5": 200_000, "0.95": 2 * S},
    }
    assert document["pairs"][1]["appearance"] is None
    assert (document["window_start"], document["window_end"]) == (3_000 * S, 3_600 * S)


def test_statistics_of_a_running_group(ask: Ask, deployment: Deployment) -> None:
    for second in range(30):
        deployment.feed(second, **{f"m{second}": 1.0})
    deployment.sketch()
    (found,) = documents(ask("streams", "stats", "factory"))
    assert found["streams"][0]["observations"] == 30
    (short,) = documents(ask("streams", "stats", "factory", "--window", "10s"))
    assert short["streams"][0]["observations"] == 10
    assert ask("streams", "stats", "factory", "-o", "table").out.startswith("stream ")
    deployment.published.append(replace(deployment.published[0], source="spark:july"))
    assert "\nthere are more, with --source: spark:july\n" in ask("streams", "stats", "factory", "-o", "table").out
    of_job = ask("streams", "stats", "factory", "--source", "spark:july", "-o", "table").out
    assert "\nfrom spark:july, made at " in of_job


def test_what_is_wrong_is_said_in_a_sentence(ask: Ask, deployment: Deployment) -> None:
    answer = ask("streams", "stats", "factory")
    assert answer.code == 2
    assert "the sketch service publishes every 5 s" in answer.err
    deployment.feed(0, m=1.0)
    deployment.sketch()
    answer = ask("streams", "stats", "factory", "--window", "2h")
    assert (answer.code, answer.err.startswith("--window 2h: ")) == (2, True)
