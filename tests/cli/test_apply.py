"""Applying definitions: what is missing is made, what differs is changed or refused, and first results are awaited."""

from pathlib import Path

import pytest

from skyband.cli.first_results import FirstResults
from skyband.client import Client
from tests.cli.remote import Ask, Deployment, ask, deployment, documents

__all__ = ["ask", "deployment"]

LAB = """\
group:
  name: lab
  retention: 10m
  streams:
    - {name: cold, lo: -50, hi: 50, max_delay: 2s, topic: lab.cold, format: json}
    - {name: damp, lo: 0, hi: 100}
queries:
  - {name: coldest, k: 5, score: cold, order: lowest, window: {size: 60s, slide: 10s}}
  - {name: worst, k: 1, score: damp - cold, window: {size: 60s, slide: 10s}, require: all}
"""
FACTORY = """\
group:
  name: factory
  retention: 1m
  streams: [{name: heat, lo: 0, hi: 100, aggregate: latest}]
queries:
  - {name: hottest, k: 2, score: heat, window: {size: 10s, slide: 1s}}
  - {name: warmest, k: 3, score: heat, window: {size: 10s, slide: 1s}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "lab.yaml"


def write(file: Path, text: str, *changes: tuple[str, str]) -> Path:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    return file


def outcomes(found: list[dict[str, object]]) -> list[str]:
    return [f"{one['kind']} {one['name']} {one['outcome']}" for one in found]


def test_what_is_missing_is_made_in_order(ask: Ask, file: Path) -> None:
    said = ask("apply", "-f", write(file, LAB), "-o", "table")
    assert said.code == 0
    assert said.out.splitlines() == [
        "stream  cold     created    topic lab.cold, 1 partition, json",
        "stream  damp     created    topic damp, 1 partition, avro",
        "group   lab      created    2 streams, 1 shard, keeps 10m",
        "query   coldest  created    plan two-tier: every attribute of the score is steady: no observation can make an "
        "object rank lower (skyband queries explain lab/coldest)",
        "query   worst    created    plan two-tier: every attribute of the score is steady: no observation can make an "
        "object rank lower (skyband queries explain lab/worst)",
    ]
    assert said.err == "watch:  skyband queries watch lab/coldest\n"
    (worst,) = [q for q in documents(ask("queries", "list", "lab")) if q["name"] == "worst"]
    assert (worst["score"], worst["require"], worst["window"]) == ("damp - cold", "all", {"size": "1m", "slide": "10s"})
    cold = documents(ask("streams", "get", "cold"))[0]
    assert (cold["lo"], cold["hi"], cold["max_delay"], cold["topic"]) == (-50.0, 50.0, "2s", "lab.cold")


def test_applying_again_changes_nothing(ask: Ask, file: Path) -> None:
    ask("apply", "-f", write(file, LAB))
    again = documents(ask("apply", "-f", file))
    assert {one["outcome"] for one in again} == {"unchanged"}
    assert documents(ask("queries", "get", "lab/worst"))[0]["revision"] == 1


def test_another_k_and_another_drift_are_taken_over(ask: Ask, file: Path) -> None:
    ask("apply", "-f", write(file, LAB))
    changes = [("k: 5", "k: 7"), ("retention: 10m", "retention: 10m\n  max_drift: 5m")]
    found = documents(ask("apply", "-f", write(file, LAB, *changes)))
    assert outcomes(found) == [
        "stream cold unchanged",
        "stream damp unchanged",
        "group lab updated",
        "query coldest updated",
        "query worst unchanged",
    ]
    assert [one["detail"] for one in found[2:4]] == ["max_drift 1m → 5m", "k 5 → 7"]
    assert documents(ask("queries", "get", "lab/coldest"))[0]["k"] == 7
    assert documents(ask("groups", "get", "lab"))[0]["max_drift"] == "5m"


def test_what_cannot_change_is_refused_and_then_nothing_is_done(ask: Ask, file: Path) -> None:
    ask("apply", "-f", write(file, LAB))
    changes = [
        ("max_delay: 2s", "max_delay: 3s"),
        ("retention: 10m", "retention: 20m\n  shards: 4"),
        ("score: cold,", "score: 2*cold,"),
        ("k: 1", "k: 2"),
    ]
    answer = ask("apply", "-f", write(file, LAB, *changes))
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.splitlines() == [
        "stream 'cold' is there with max_delay 2s, not 3s; change it with `skyband streams update cold`, then `skyband "
        "groups regenerate lab`; or give the stream another name",
        "group 'lab' is there with retention 10m, not 20m, shards 1, not 4; that takes a new generation: skyband "
        "groups regenerate lab --retention 20m --shards 4",
        "query 'lab/coldest' is there with score cold, not 2*cold; one that asks something else is another query: give "
        "it another name, or remove this one (skyband queries delete lab/coldest) and apply again",
    ]
    assert documents(ask("queries", "get", "lab/worst"))[0]["k"] == 1


def test_a_stream_that_changed_after_its_group_is_told_of(ask: Ask, file: Path) -> None:
    ask("apply", "-f", write(file, LAB))
    ask("streams", "update", "cold", "--max-delay", "3s")
    found = documents(ask("apply", "-f", write(file, LAB, ("max_delay: 2s", "max_delay: 3s"))))
    assert found[2]["detail"] == (
        "generation 1 reads cold as before the last change; take it over with skyband groups regenerate lab"
    )


def test_a_paused_query_stays_so_and_is_told_of(ask: Ask, file: Path) -> None:
    ask("apply", "-f", write(file, LAB))
    ask("queries", "pause", "lab/worst")
    found = documents(ask("apply", "-f", file))
    assert (found[4]["outcome"], found[4]["detail"]) == (
        "unchanged",
        "paused; go on with skyband queries resume lab/worst",
    )


@pytest.mark.parametrize("is_there", [False, True])
def test_a_dry_run_tells_and_does_nothing(ask: Ask, file: Path, is_there: bool) -> None:
    if is_there:
        ask("apply", "-f", write(file, LAB))
    before = [ask(kind, "list").out for kind in ("streams", "groups", "queries")]
    said = ask("apply", "-f", write(file, LAB, ("k: 5", "k: 6")), "--dry-run", "-o", "table").out.splitlines()
    assert said[0].split()[:3] == (["stream", "cold", "unchanged"] if is_there else ["stream", "cold", "would"])
    assert said[3].startswith("query   coldest  would be updated" if is_there else "query   coldest  would be created")
    assert [ask(kind, "list").out for kind in ("streams", "groups", "queries")] == before


def test_where_new_groups_begin_can_be_said(ask: Ask, file: Path, deployment: Deployment) -> None:
    ask("apply", "-f", write(file, LAB), "--begin", "latest")
    assert deployment.begins == ["latest"]


def test_several_files_follow_one_option(ask: Ask, tmp_path: Path) -> None:
    one, two = write(tmp_path / "a.yaml", LAB), write(tmp_path / "b.yaml", FACTORY)
    found = documents(ask("apply", "-f", one, two))
    assert [one["name"] for one in found if one["kind"] == "group"] == ["lab", "factory"]
    assert outcomes(found)[-2:] == ["query hottest unchanged", "query warmest created"]


def test_a_file_that_is_wrong_is_shown_where_it_is(ask: Ask, file: Path, tmp_path: Path) -> None:
    wrong = write(tmp_path / "wrong.yaml", LAB, ("score: cold,", "score: speed,"))
    answer = ask("apply", "-f", write(file, LAB), wrong)
    assert answer.code == 2
    assert f"{wrong}:8:" in answer.err
    assert "^^^^^" in answer.err
    assert documents(ask("groups", "list"))[-1]["name"] == "factory"


def test_what_was_made_before_an_error_is_told(ask: Ask, file: Path, deployment: Deployment) -> None:
    def refuse(streams: object, begin: object) -> tuple[object, ...]:
        raise ConflictError("topic 'lab.cold' of stream 'cold' does not exist; create it")

    from skyband.errors import ConflictError

    deployment._control._resolve_sources = refuse  # type: ignore[assignment]
    answer = ask("apply", "-f", write(file, LAB), "-o", "table")
    assert answer.code == 1
    assert answer.err == "topic 'lab.cold' of stream 'cold' does not exist; create it\n"
    assert [line.split()[:3] for line in answer.out.splitlines()] == [
        ["stream", "cold", "created"],
        ["stream", "damp", "created"],
    ]


def test_first_results_are_awaited_when_that_is_asked(ask: Ask, file: Path, deployment: Deployment) -> None:
    deployment.feed(1.0, m1=30.0)
    deployment.feed(3.0, m2=40.0)
    answer = ask("apply", "-f", write(file, FACTORY), "--wait", "--timeout", 0)
    # The pipeline of this test moves by hand: the new query is not answered yet.
    assert answer.code == 1
    assert "no result of factory/warmest within 0.0 s\nwarmest  " in answer.err
    assert "  do      " in answer.err


class Hand:
    """A clock that moves with each sleep; each sleep lets something happen."""

    def __init__(self, *events: object) -> None:
        self.now, self.events = 0.0, list(events)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.events:
            self.events.pop(0)()  # type: ignore[operator]


def test_each_query_has_its_first_result_told(
    ask: Ask, file: Path, deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    hand = Hand(lambda: deployment.feed(1.0, m1=30.0), lambda: deployment.feed(3.0, m2=40.0))
    with Client(deployment.address) as client:
        assert FirstResults(client, ["factory/hottest", "factory/coolest"], 60.0, hand, hand.sleep).wait()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert said[0].startswith("first result of factory/hottest: 20")
    assert said[0].endswith(" ✓  (0.4 s)")
