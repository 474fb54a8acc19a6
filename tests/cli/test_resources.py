"""Streams, groups and queries from the command line, against servers of this process."""

import pytest

from skyband.client import Client
from tests.cli.remote import Ask, Deployment, ask, deployment, documents

__all__ = ["ask", "deployment"]


def test_a_question_of_ones_own_is_asked_in_three_commands(ask: Ask) -> None:
    (stream,) = documents(
        ask(
            "streams",
            "add",
            "cold",
            "--lo",
            -50,
            "--hi",
            50,
            "--max-delay",
            "2s",
            "--idle-after",
            "1m",
            "--format",
            "json",
        )
    )
    assert (stream["max_delay"], stream["idle"], stream["format"]) == ("2s", {"after": "1m", "then": "flush"}, "json")
    (group,) = documents(ask("groups", "add", "lab", "--stream", "cold", "--retention", "10m", "--shards", 2))
    assert (group["streams"], group["retention"], group["shards"], group["generation"]) == (["cold"], "10m", 2, 1)
    assert group["sources"] == [{"stream": "cold", "partition": 0, "offset": 7}]
    words = ("queries", "add", "lab/coldest", "--k", 5, "--score", "cold", "--window", "60s", "--slide", "10s")
    (query,) = documents(ask(*words, "--order", "lowest", "--require", "cold"))
    assert (query["group"], query["name"], query["k"], query["require"]) == ("lab", "coldest", 5, ["cold"])
    assert query["plan"]["reason"]
    assert [found["name"] for found in documents(ask("queries", "list", "lab"))] == ["coldest"]
    assert [found["name"] for found in documents(ask("queries", "list"))] == ["coolest", "hottest", "coldest"]


def test_a_window_in_rows_is_a_whole_number(ask: Ask) -> None:
    ask("streams", "add", "load")
    ask("groups", "add", "rows", "--stream", "load", "--retention", "1m", "--retention-rows", 2_000)
    words = ("queries", "add", "rows/top", "--k", 1, "--score", "load", "--window", "1,000", "--slide", 10)
    assert documents(ask(*words))[0]["window"] == {"count": 1000, "slide": 10}


def test_an_object_stream_lists_its_attributes(ask: Ask) -> None:
    (stream,) = documents(ask("streams", "add", "trades", "--attribute", "price:0:1000", "--attribute", "volume"))
    assert [(a["name"], a["lo"], a["hi"]) for a in stream["attributes"]] == [
        ("price", 0.0, 1000.0),
        ("volume", 0.0, "inf"),
    ]


def test_what_is_not_said_of_a_stream_stays_as_it_is(ask: Ask) -> None:
    ask("streams", "add", "cold", "--idle-then", "hold", "--object-id", "machine", "--hi", 50)
    (changed,) = documents(ask("streams", "update", "cold", "--idle-after", "5s", "--value", "t", "--max-delay", "3s"))
    assert changed["idle"] == {"after": "5s", "then": "hold"}
    assert (changed["fields"]["object_id"], changed["fields"]["value"]) == ("machine", "t")
    assert (changed["hi"], changed["max_delay"], changed["revision"]) == (50.0, "3s", 2)


def test_a_group_changes_its_drift_and_its_generation(ask: Ask, deployment: Deployment) -> None:
    (group,) = documents(ask("groups", "update", "factory", "--max-drift", "5m"))
    assert (group["max_drift"], group["generation"]) == ("5m", 1)
    (tried,) = documents(ask("groups", "regenerate", "factory", "--shards", 4, "--dry-run"))
    assert (tried["shards"], tried["generation"]) == (4, 2)
    assert documents(ask("groups", "get", "factory"))[0]["generation"] == 1
    (made,) = documents(ask("groups", "regenerate", "factory", "--begin", "2026-07-01T12:00:00Z"))
    assert (made["shards"], made["generation"]) == (1, 2)
    assert deployment.begins[-1] == 1_782_907_200_000_000


def test_a_query_is_changed_paused_resumed_and_removed(ask: Ask) -> None:
    assert documents(ask("queries", "update", "factory/hottest", "--k", 7))[0]["k"] == 7
    assert documents(ask("queries", "pause", "factory/hottest"))[0]["state"] == "paused"
    assert documents(ask("queries", "resume", "factory/hottest"))[0]["state"] == "active"
    assert documents(ask("queries", "cancel", "factory/hottest")) == [{"query": "factory/hottest", "deleted": True}]
    assert documents(ask("queries", "delete", "factory/coolest")) == [{"query": "factory/coolest", "deleted": True}]
    assert documents(ask("queries", "list")) == []
    assert documents(ask("groups", "delete", "factory")) == [{"name": "factory", "deleted": True}]
    assert documents(ask("streams", "delete", "heat")) == [{"name": "heat", "deleted": True}]
    assert documents(ask("streams", "list")) == documents(ask("groups", "list")) == []


def test_a_dry_run_changes_nothing(ask: Ask) -> None:
    words = ("queries", "add", "factory/warmest", "--k", 5, "--score", "heat", "--window", "10s", "--dry-run")
    assert documents(ask(*words))[0]["name"] == "warmest"
    assert ask("queries", "get", "factory/warmest").code == 2


def test_how_a_query_is_doing_is_said_in_words_and_as_values(ask: Ask) -> None:
    said = ask("queries", "describe", "factory/hottest", "-o", "table").out
    assert said.startswith("hottest  STARTING\n")
    assert "  do    wait a moment" in said
    (found,) = documents(ask("queries", "describe", "factory/hottest"))
    assert found["headline"] == "hottest  STARTING"
    assert found["status"]["silent_shards"] == [0]
    assert found["lines"][0]["label"] == "why"


def test_how_a_query_is_answered_is_explained(ask: Ask) -> None:
    assert ask("queries", "explain", "factory/hottest", "-o", "table").out.startswith("hottest: the 2 objects with")
    assert documents(ask("queries", "explain", "factory/hottest"))[0]["text"].startswith("hottest: the 2 objects")


def test_lists_are_read_page_by_page(ask: Ask, deployment: Deployment) -> None:
    with Client(deployment.address) as client:
        for number in range(120):
            client.create_stream(f"s{number}")
    names = [found["name"] for found in documents(ask("streams", "list"))]
    assert (len(names), names) == (121, sorted(names))


def test_tables_have_a_row_each_and_cut_nothing(ask: Ask) -> None:
    long = "m" * 60
    ask("streams", "add", long, "--topic", "factory." + "t" * 150, "--hi", 100)
    lines = [line.rstrip() for line in ask("streams", "list", "-o", "table").out.splitlines()]
    assert lines[0].split() == ["stream", "topic", "format", "values", "combined", "by", "max", "delay", "idle"]
    assert lines[2].startswith(f"{long}  factory.{'t' * 150}  avro    0 to 100")
    assert (
        ask("queries", "list", "-o", "table")
        .out.splitlines()[2]
        .startswith("factory/hottest  active  the 2 highest heat  last 10s, every 1s  view")
    )
    group = ask("groups", "list", "-o", "table").out.splitlines()[1]
    assert group.split() == ["factory", "1", "heat", "1", "1s", "1m", "1m", "0"]


def test_one_thing_is_shown_key_by_key(ask: Ask) -> None:
    said = ask("streams", "get", "heat", "-o", "table").out
    assert ["idle.after", "10s"] in [line.split() for line in said.splitlines()]
    assert ask("queries", "get", "factory/hottest", "-o", "table").out.splitlines()[3].split() == ["k", "2"]
    ask("groups", "regenerate", "factory")
    said = ask("groups", "get", "factory", "-o", "table").out
    assert said.splitlines()[-1].split() == ["begins", "heat/0", "at", "7"]


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("queries add factory/x --k 0 --score heat --window 10s", 2, "--k 0: k must be at least 1"),
        ("queries add factory/x --k 1 --score heat --window 10", 2, "retention_rows"),
        ("queries add factory/x --k 1 --score heat --window ten", 2, "--window ten: size 'ten' is no duration; write"),
        ("queries add factory/x --k 1 --score speed --window 10s", 2, "score uses 'speed', which is not a stream of"),
        ("queries add factory/x --k 1 --score heat --window 10s --slide 700ms", 2, "--slide 700ms: "),
        ("queries add factory/x --k 1 --score heat --window 10s --order up", 2, "--order up: order must be one of"),
        ("queries add factory/hottest --k 1 --score heat --window 10s", 1, "already"),
        (
            "queries add hottest --k 1 --score heat --window 10s",
            2,
            "hottest: must be GROUP/QUERY, such as factory/hottest",
        ),
        ("queries get hottest", 2, "query 'hottest' must be written as group/query"),
        ("queries get factory/lost", 2, "there is no query 'lost' in group 'factory'"),
        ("queries update factory/hottest --k 0", 2, "--k 0: k must be at least 1"),
        ("queries watch factory/lost", 2, "there is no query 'lost' in group 'factory'"),
        ("groups get lost", 2, "no group 'lost'"),
        ("groups update factory", 2, "nothing is said that shall change of group 'factory'"),
        ("groups update factory --max-drift soon", 2, "--max-drift soon: max_drift 'soon' is no duration"),
        ("groups add x --stream lost --retention 1m", 2, "lost"),
        ("groups add x --stream heat", 2, "--retention"),
        ("groups regenerate factory --begin soon", 2, "--begin soon: is none of earliest, latest and a time"),
        ("groups delete factory", 1, "factory"),
        ("streams delete heat", 1, "heat"),
        ("streams add x --hi -5", 2, "--hi -5.0: attribute 'x' has lo 0, which is not below hi -5"),
        ("streams add x --aggregate most", 2, "--aggregate most: aggregate must be one of best, latest"),
        ("streams add x --missing none", 2, "--missing none: must be worst or a number"),
        ("streams add x --attribute a:1", 2, "--attribute a:1: must be NAME or NAME:LO:HI, such as price:0:100"),
        ("streams add x --idle-after soon", 2, "--idle-after soon: after 'soon' is no duration"),
        ("streams add x --schema @/nowhere", 1, "/nowhere: no such file or directory"),
        ("streams list -o xml", 2, "-o xml: no such format; use table or json"),
        ("streams list --server there", 2, "server 'there' must be host:port, such as localhost:50051"),
        ("streams list --context lost", 2, "there is no context 'lost'; there are: none"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(ask: Ask, command: str, code: int, said: str) -> None:
    answer = ask(*command.split())
    assert said in answer.err
    assert (answer.code, answer.out) == (code, "")
    assert "Traceback" not in answer.err


def test_a_server_that_is_not_there_is_named(
    deployment: Deployment, call: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.stop()
    monkeypatch.setattr("skyband.cli.remote._RETRY_S", 0.1)
    answer = call("queries", "list")
    assert answer.code == 1
    assert answer.err.startswith(f"cannot reach Skyband at {deployment.address} (")
    assert len(answer.err.splitlines()) == 1
