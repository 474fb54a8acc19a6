"""Watching what could still happen: as JSON Lines and as tables, from a query that asks for it."""

import json

import pytest

from skyband.cli.watch import watch_query
from skyband.client import Client
from skyband.errors import DefinitionError
from tests.cli.remote import Ask, Deployment, ask, deployment
from tests.cli.test_watch import feed_two
from tests.services.fanout.conftest import START, S

__all__ = ["ask", "deployment"]

WINDOW = ("--window", "10s", "--slide", "1s")
CANDIDATE = {"object_id": "m2", "score": 40.0, "best_score": 100.0, "lacks": [], "until": START + 11 * S}


@pytest.fixture
def asking(ask: Ask, deployment: Deployment) -> Client:
    """A client of servers where rows have come, and the query rising asks for a candidate."""
    assert ask("queries", "add", "factory/rising", "--k", 1, "--score", "heat", *WINDOW, "--candidates", 3).code == 0
    feed_two(deployment)
    return Client(deployment.address)


def test_lines_tell_what_rows_could_reach_and_who_could_come_in(
    asking: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    with asking:
        for snapshots in (False, True):
            watch_query(asking, "factory/rising", "json", snapshots=snapshots, limit=1)
            told = json.loads(capsys.readouterr().out)
            (row,) = told["rows"]
            assert (row["object_id"], row["score"], row["best_score"], row["safe_until"]) == ("m1", 50.0, 100.0, None)
            assert told["candidates"] == [CANDIDATE]


def test_results_carry_them_to_whoever_asks(asking: Client) -> None:
    with asking:
        result = asking.get_result("factory/rising")
        update = next(iter(asking.subscribe("factory/rising")))
    assert result.candidates == update.candidates
    assert [(c.object_id, c.best_score) for c in update.candidates] == [("m2", 100.0)]
    assert [row.best_score for row in result.rows] == [100.0]


def test_what_follows_tells_all_that_could_come_in_now(asking: Client, deployment: Deployment) -> None:
    with asking:
        updates = iter(asking.subscribe("factory/rising"))
        first = next(updates)
        deployment.feed(5.5, m2=55.0)
        second = next(updates)
    assert not second.is_snapshot
    assert [c.object_id for c in first.candidates] == ["m2"]
    assert [(c.object_id, c.score) for c in second.candidates] == [("m2", 40.0), ("m3", 45.0)]


def test_no_more_are_shown_than_asked_for_and_none_if_none_is_wanted(
    asking: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    with asking:
        watch_query(asking, "factory/rising", "json", snapshots=True, limit=1, candidates=0)
        assert list(json.loads(capsys.readouterr().out)) == ["query", "window_start", "window_end", "rows"]
        watch_query(asking, "factory/rising", "table", snapshots=True, limit=1, candidates=1)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:3] == [["#", "object", "score", "could", "reach", "heat"], ["1", "m1", "50", "100", "50"]]
    assert lines[3] == ["could", "still", "come", "in", "now", "could", "reach", "lacks", "until"]
    assert lines[4][:4] == ["m2", "40", "100", "–"]


def test_a_query_that_does_not_ask_has_none_to_show(asking: Client) -> None:
    with asking, pytest.raises(DefinitionError, match="query factory/hottest tells of no candidates; add a query"):
        watch_query(asking, "factory/hottest", "json", snapshots=True, limit=1, candidates=2)
