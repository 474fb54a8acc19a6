"""What of the statistics is removed, and what stays."""

import itertools
from collections.abc import Callable

import pytest

from services.sketch.sweep import Sweep
from skyband.control.commands import CreateGroup, CreateStream, DeleteGroup, RegenerateGroup
from skyband.control.stage import ControlStage
from skyband.log.clock import ManualClock
from skyband.log.memory import MemoryLog
from skyband.log.partition_of import partition_of
from skyband.log.read_range import read_all
from skyband.model.resources import GroupSpec
from skyband.model.stream import Attribute, Stream
from skyband.sketch.publication import Publication

S = 1_000_000


class Place:
    """A catalog, and statistics of its groups."""

    def __init__(self) -> None:
        self.log = MemoryLog(ManualClock())
        for topic, partitions in {"catalog": 1, "progress": 1, "statistics": 2}.items():
            self.log.create_topic(topic, partitions)
        numbers = itertools.count(1)
        self.control = ControlStage(self.log, ManualClock(), lambda: f"u{next(numbers)}")
        self.control.execute(CreateStream(Stream(name="a", attributes=(Attribute(name="a"),))))
        self.producer = self.log.producer()

    def create(self, group: str) -> None:
        self.control.execute(CreateGroup(GroupSpec(name=group, streams=("a",), retention_us=S)))

    def regenerate(self, group: str) -> None:
        self.control.execute(RegenerateGroup(group, GroupSpec(name=group, streams=("a",), retention_us=S)))

    def publish(self, group: str, generation: int, shard: int = 0, source: str = "service") -> None:
        made = Publication(
            group=group,
            generation=generation,
            shard=shard,
            aligned_offset=1,
            next_offsets=(),
            newest_us=0,
            from_us=0,
            to_us=S,
            source=source,
            published_us=0,
            observations=b"",
            sketch=b"",
        )
        self.producer.send("statistics", partition_of(made.key, 2), made, key=made.key.encode())
        self.producer.flush()

    def living(self) -> set[str]:
        newest = {record.key: record.value for record in read_all(self.log, "statistics")}
        return {key.decode() for key, value in newest.items() if key is not None and value is not None}


@pytest.fixture
def place() -> Place:
    return Place()


def drain(sweep: Sweep) -> None:
    while sweep.step(0.0):
        pass


def delete(place: Place) -> None:
    place.control.execute(DeleteGroup("g"))


def regenerate(place: Place) -> None:
    place.regenerate("g")


@pytest.mark.parametrize("end", [delete, regenerate])
def test_what_a_generation_published_goes_with_it(place: Place, end: Callable[[Place], None]) -> None:
    place.create("g")
    place.create("other")
    for shard in range(3):
        place.publish("g", 1, shard)
    place.publish("g", 1, source="spark:july")
    place.publish("other", 1)
    sweep = Sweep(place.log)
    drain(sweep)
    assert place.living() == {"g/1/0", "g/1/0/spark:july", "g/1/1", "g/1/2", "other/1/0"}
    end(place)
    drain(sweep)
    assert place.living() == {"other/1/0"}


def test_what_comes_after_the_end_is_removed_too(place: Place) -> None:
    place.create("g")
    sweep = Sweep(place.log)
    delete(place)
    drain(sweep)
    place.publish("g", 1)
    drain(sweep)
    assert place.living() == set()


def test_a_group_that_is_made_again_keeps_what_it_publishes(place: Place) -> None:
    place.create("g")
    delete(place)
    place.create("g")
    generation = place.control.catalog.group("g").generation
    place.publish("g", generation)
    place.publish("g", generation - 1)
    drain(Sweep(place.log))
    assert generation == 2
    assert place.living() == {"g/2/0"}


def test_a_group_of_which_the_catalog_says_nothing_is_left_alone(place: Place) -> None:
    place.publish("nobody", 1)
    drain(Sweep(place.log))
    assert place.living() == {"nobody/1/0"}


def test_a_sweep_begun_later_removes_what_an_earlier_one_has_not(place: Place) -> None:
    place.create("g")
    place.publish("g", 1)
    first = Sweep(place.log)
    drain(first)
    first.close()
    delete(place)
    drain(Sweep(place.log))
    assert place.living() == set()
