"""What control knows of what was published, and how it answers."""

from dataclasses import replace

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from services.control.servicer import ControlServicer
from services.control.statistics import PublicationReader
from skyband.errors import LogError, SkybandError
from skyband.model.published_statistics import PublishedStatistics
from skyband.model.resources import GroupResource
from skyband.model.statistics import Appearance, Estimate, GroupStatistics, PairStatistics, StreamStatistics
from skyband.sketch.merged import merged_statistics
from skyband.v1 import control_pb2 as pb
from skyband.v1 import control_pb2_grpc
from skyband.v1.control_pb2_grpc import ControlServiceStub
from tests.services.control.conftest import Control
from tests.services.control.requests import FACTORY, HOTTEST, create_factory, create_hottest
from tests.services.serving import Server, refused
from tests.services.sketch.test_sweep import Place


@pytest.fixture
def place() -> Place:
    return Place()


def keys(reader: PublicationReader) -> set[tuple[str, int, int, str]]:
    while reader.poll(0.0):
        pass
    return set(reader.publications)


def of(*place: object) -> tuple[object, ...]:
    return (*place, "service")


def test_the_newest_generation_of_each_group_is_known(place: Place) -> None:
    for generation in (1, 2):
        for shard in (0, 1):
            place.publish("g", generation, shard)
    place.publish("other", 1)
    reader = PublicationReader(place.log)
    assert not reader.is_current
    assert keys(reader) == {of("g", 2, 0), of("g", 2, 1), of("other", 1, 0)}
    assert reader.is_current
    place.publish("g", 1)
    assert of("g", 1, 0) not in keys(reader)


def test_what_jobs_publish_is_known_beside_what_the_service_does(place: Place) -> None:
    place.publish("g", 1)
    place.publish("g", 1, source="spark:july")
    place.publish("g", 2, source="spark:august")
    reader = PublicationReader(place.log)
    assert keys(reader) == {of("g", 1, 0), ("g", 1, 0, "spark:july"), ("g", 2, 0, "spark:august")}
    place.publish("g", 2, source="spark:july")
    assert keys(reader) == {of("g", 1, 0), ("g", 2, 0, "spark:july"), ("g", 2, 0, "spark:august")}


def test_what_is_removed_is_forgotten(place: Place) -> None:
    place.publish("g", 1)
    reader = PublicationReader(place.log)
    assert keys(reader) == {of("g", 1, 0)}
    for partition in (0, 1):
        place.producer.send("statistics", partition, None, key=b"g/1/0")
    assert keys(reader) == set()


def test_nothing_published_is_not_found_in_words(stub: ControlServiceStub) -> None:
    create_factory(stub)
    with refused() as found:
        stub.GetStatistics(pb.GetStatisticsRequest(name=FACTORY))
    assert (found.code, found.reason) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
    assert "the sketch service publishes every 5 s" in found.message
    with refused() as found:
        stub.GetStatistics(pb.GetStatisticsRequest(name="groups/none"))
    assert found.code is grpc.StatusCode.NOT_FOUND


def test_the_window_is_passed_on_and_its_field_is_named_when_it_is_wrong(control: Control) -> None:
    asked: list[tuple[str, int | None, str]] = []

    def statistics_of(resource: GroupResource, window_us: int | None, source: str) -> object:
        asked.append((resource.group.name, window_us, source))
        return merged_statistics(resource.group, resource.generation, (), window_us)

    servicer = ControlServicer(control.call, control.resolve, "", statistics_of)  # type: ignore[arg-type]
    server = Server(lambda s: control_pb2_grpc.add_ControlServiceServicer_to_server(servicer, s))
    with grpc.insecure_channel(server.address) as channel:
        stub = control_pb2_grpc.ControlServiceStub(channel)
        create_factory(stub)
        for window in (Duration(seconds=5), None):
            with refused():
                stub.GetStatistics(pb.GetStatisticsRequest(name=FACTORY, window=window))
        with refused():
            stub.GetStatistics(pb.GetStatisticsRequest(name=FACTORY, source="spark:july"))
        with refused() as found:
            stub.GetStatistics(pb.GetStatisticsRequest(name=FACTORY, window=Duration(seconds=-5)))
    server.stop()
    assert asked == [of("factory", 5_000_000), of("factory", None), ("factory", None, "spark:july")]
    assert found.violations[0][0] == "window"


S = 1_000_000
STREAM = StreamStatistics(Estimate(500.0, 42.0), Estimate(9.0, 1.0), 3.0, ())
KNOWN = PublishedStatistics(
    group="factory",
    generation=1,
    streams=("temperature", "vibration"),
    attributes=(("temperature",), ("vibration",)),
    observations=(1_000, 2_000),
    from_us=0,
    published_us=0,
    source="service",
    silent_shards=(),
    statistics=GroupStatistics(
        at_us=60 * S,
        window_us=10 * S,
        rate=1.0,
        sampled_objects=600,
        streams=(STREAM, STREAM),
        pairs=tuple(PairStatistics(i, 1 - i, Appearance(0.5, 0.02, 500), (-S, 0, S)) for i in (0, 1)),
    ),
)


def explained(control: Control, known: PublishedStatistics | SkybandError) -> tuple[str, list[int | None]]:
    """Return what is explained of a query with a window of 10 s, and of which windows statistics were asked."""
    windows: list[int | None] = []

    def statistics_of(resource: GroupResource, window_us: int | None, source: str) -> PublishedStatistics:
        assert source == "service"
        windows.append(window_us)
        if isinstance(known, SkybandError):
            raise known
        return known

    servicer = ControlServicer(control.call, control.resolve, "", statistics_of)  # type: ignore[arg-type]
    server = Server(lambda s: control_pb2_grpc.add_ControlServiceServicer_to_server(servicer, s))
    with grpc.insecure_channel(server.address) as channel:
        stub = ControlServiceStub(channel)
        create_hottest(stub)
        text = stub.ExplainQuery(pb.ExplainQueryRequest(name=HOTTEST)).text
    server.stop()
    return text, windows


def test_a_query_is_explained_with_the_statistics_of_its_window(control: Control) -> None:
    text, windows = explained(control, KNOWN)
    assert "  temperature  500 ± 42 objects  1,000 observations" in text
    assert windows == [10 * S]


def test_statistics_of_another_generation_explain_nothing(control: Control) -> None:
    text, _ = explained(control, replace(KNOWN, generation=2))
    assert "  unknown: nothing is published of these streams yet" in text


def test_a_query_is_explained_without_statistics_while_these_cannot_be_read(control: Control) -> None:
    text, _ = explained(control, LogError("the statistics have not been read yet; try again in a moment"))
    assert text.startswith("hottest: the 3 objects with the highest temperature\n")
    assert "  unknown: the statistics have not been read yet; try again in a moment" in text
    assert "  expected   not known yet" in text
