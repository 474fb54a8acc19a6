"""Controls that are killed, doubled and frozen: the catalog loses nothing, and has one writer."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.runtime.embedded import EmbeddedKafka
from skyband.client import Client
from skyband.errors import LogError, SkybandError
from tests.kafka.cluster import Cluster, until
from tests.kafka.scenarios import define, make_topics, mixed

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder: Path = tmp_path_factory.mktemp("controls")
    with Cluster(kafka.bootstrap, folder) as cluster:
        cluster.start("control-1")
        yield cluster


def catalog(client: Client) -> list[Any]:
    """Return all that a control says there is, with uids, revisions, plans and starts."""
    return [*client.list_streams(), *client.list_groups(), *client.list_queries()]


def test_a_catalog_outlives_its_writers_and_has_one_at_a_time(cluster: Cluster) -> None:
    scenario = mixed("kept", 0, idle={"then": "hold"})
    make_topics(cluster.bootstrap, scenario)
    with cluster.client("control-1") as first:
        define(first, scenario)
        first.update_query("kept/sums", k=7)
        first.pause_query("kept/far")
        first.delete_query("kept/all")
        kept = catalog(first)
    assert len(kept) == 5 + 1 + 2

    cluster.restart("control-1")
    with cluster.client("control-1") as first:
        until(lambda: catalog(first) == kept, "the catalog as it was")

    cluster.start("control-2")
    # The partition stays with who has it; the second takes part in the election, and gets none.
    elected(cluster, "control-1", others=("control-2",))
    with cluster.client("control-1") as first, cluster.client("control-2") as second:
        until(lambda: catalog(second) == kept, "the same catalog at the second control")
        with refused():
            impatient(cluster, "control-2").create_stream("by_second")
        impatient(cluster, "control-1").create_stream("by_first")
        kept = catalog(first)
        until(lambda: catalog(second) == kept, "what the first has written meanwhile, at the second")

    cluster["control-1"].kill()
    with cluster.client("control-2") as second:
        assert catalog(second) == kept
        second.create_stream("by_second")
        kept = catalog(second)
        cluster.start("control-1")
        elected(cluster, "control-2", others=("control-1",))
        with cluster.client("control-1") as first:
            until(lambda: catalog(first) == kept, "what the second has written, at the first")
    for name in ("control-1", "control-2"):
        assert not cluster[name].events("stage failed, built anew"), "nobody was shut out"
    cluster.check()


def test_a_writer_that_wakes_up_after_it_was_replaced_writes_nothing(cluster: Cluster) -> None:
    for name in ("control-1", "control-2"):
        if name not in cluster.services or not cluster[name].is_running:
            cluster.start(name)
    old = until(lambda: writer(cluster), "one writer of two")
    new = "control-2" if old == "control-1" else "control-1"
    outcome: list[object] = []

    def write() -> None:
        try:
            outcome.append(impatient(cluster, old).create_stream("by_zombie"))
        except SkybandError as error:
            outcome.append(error)

    cluster[old].freeze()
    try:
        with cluster.client(new) as client:
            client.create_stream("meanwhile")
            kept = catalog(client)
        call = threading.Thread(target=write)
        # The call lies in the frozen process's sockets, and is the first thing that it finds when it wakes up.
        call.start()
    finally:
        cluster[old].thaw()
    call.join(60)
    assert isinstance(outcome[0], LogError), outcome
    print("the zombie said:", outcome[0])
    for name in (new, old):
        with cluster.client(name) as client:
            until(lambda its=client: catalog(its) == kept, f"the same catalog at {name}")  # type: ignore[misc]
    cluster.check()


def impatient(cluster: Cluster, name: str) -> Client:
    """Return a client that tries once."""
    return Client(cluster[name].address, retry_s=0.001)


def writer(cluster: Cluster) -> str | None:
    """Return who of two controls was elected, None until both take part."""
    members = cluster.members("skyband.control")
    chosen = [name for name, parts in members.items() if parts]
    return chosen[0] if len(members) == 2 and len(chosen) == 1 else None


def elected(cluster: Cluster, name: str, *, others: tuple[str, ...]) -> None:
    """Wait until these controls take part in the election, and this one is chosen."""
    wanted = {name, *others}
    until(
        lambda: cluster.members("skyband.control").keys() == wanted and writer(cluster) == name,
        lambda: f"{name} is elected; {cluster.members('skyband.control')}",
    )


def refused() -> Any:
    return pytest.raises(LogError, match="only reads")
