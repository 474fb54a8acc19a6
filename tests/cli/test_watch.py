"""Watching a query: JSON Lines, tables one below the other, and breaks that are mended."""

import io
import json
import sys
import threading

import pytest

from skyband.cli.watch import watch_query
from skyband.client import Client
from tests.cli.remote import Ask, Deployment, ask, deployment, documents
from tests.services.fanout.conftest import START, S

__all__ = ["ask", "deployment"]


def feed_two(deployment: Deployment) -> None:
    deployment.feed(1.0, m1=30.0, m2=40.0)
    deployment.feed(2.5, m1=50.0)
    deployment.feed(4.0, m3=45.0)


def test_the_first_line_is_the_whole_result(ask: Ask, deployment: Deployment) -> None:
    feed_two(deployment)
    (first,) = documents(ask("queries", "watch", "factory/hottest", "--limit", 1))
    assert (first["kind"], first["query"], first["window_end"]) == ("snapshot", "hottest", START + 4 * S)
    assert [(row["rank"], row["object_id"], row["score"]) for row in first["rows"]] == [
        (1, "m1", 50.0),
        (2, "m2", 40.0),
    ]
    assert first["rows"][0]["attributes"] == {"heat": 50.0}


def test_what_follows_are_changes(deployment: Deployment, capsys: pytest.CaptureFixture[str]) -> None:
    feed_two(deployment)
    with Client(deployment.address) as client:
        watching = threading.Thread(
            target=watch_query, args=(client, "factory/hottest", "json"), kwargs={"snapshots": False, "limit": 2}
        )
        watching.start()
        deployment.source.wait_for(live=1)
        while not (out := capsys.readouterr().out):
            assert watching.is_alive()
        deployment.feed(5.5, m2=55.0)
        watching.join(30)
    first, second = json.loads(out), json.loads(capsys.readouterr().out)
    assert first["kind"] == "snapshot"
    assert (second["kind"], second["window_end"]) == ("changes", START + 5 * S)
    assert [row["object_id"] for row in second["entered"]] == ["m3"]
    assert [row["object_id"] for row in second["left"]] == ["m2"]
    assert second["moved"] == second["rescored"] == []


def test_snapshots_are_written_as_a_replay_writes_them(ask: Ask, deployment: Deployment) -> None:
    feed_two(deployment)
    (whole,) = documents(ask("queries", "watch", "factory/hottest", "--snapshots", "--limit", 1))
    assert list(whole) == ["query", "window_start", "window_end", "rows"]
    assert list(whole["rows"][0]) == ["rank", "object_id", "score", "attributes"]


def test_tables_stand_one_below_the_other(ask: Ask, deployment: Deployment) -> None:
    feed_two(deployment)
    answer = ask("queries", "watch", "factory/hottest", "--snapshots", "--limit", 1, "-o", "table")
    lines = [line.rstrip() for line in answer.out.splitlines()]
    assert lines[0].startswith("factory/hottest  2023-11-1")
    assert [line.split() for line in lines[1:4]] == [
        ["#", "object", "score", "could", "reach", "heat"],
        ["1", "m1", "50", "100", "50"],
        ["2", "m2", "40", "100", "40"],
    ]


def test_a_break_is_told_and_mended(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    feed_two(deployment)
    # What one thread writes is not to be taken away by another that reads: these are only ever read whole.
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with Client(deployment.address) as client:
        watching = threading.Thread(
            target=watch_query, args=(client, "factory/hottest", "json"), kwargs={"snapshots": False, "limit": 2}
        )
        watching.start()
        deployment.source.wait_for(live=1)
        while not out.getvalue().endswith("\n"):
            assert watching.is_alive()
        deployment.stop()
        while "connection lost (" not in err.getvalue():
            assert watching.is_alive()
        deployment.feed(5.5, m2=55.0)
        deployment.start()
        watching.join(30)
    assert [json.loads(line)["kind"] for line in out.getvalue().splitlines()] == ["snapshot", "changes"]
    assert err.getvalue().count("connection lost") == 1
    assert "connected again after " in err.getvalue()


def test_a_query_that_is_deleted_ends_the_watch(ask: Ask, deployment: Deployment) -> None:
    ask("queries", "delete", "factory/hottest")
    answer = ask("queries", "watch", "factory/hottest")
    assert (answer.code, answer.out) == (2, "")
    assert "hottest" in answer.err
