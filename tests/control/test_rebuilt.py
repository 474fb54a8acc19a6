"""A rebuilt generation is taken over only if it is the next one of the same group, and only once it is ready."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from skyband.control.commands import RegenerateGroup, UpdateStream
from skyband.errors import ConflictError, DefinitionError, SkybandError
from skyband.model.rebuild import HISTORY_PARTITIONS, Rebuild, RebuiltShard, RebuiltSource
from skyband.model.resources import GroupSpec, SourceStart
from tests.control.catalog_driver import Driver, driver_with_a_query, stream


@pytest.fixture
def driver() -> Driver:
    return driver_with_a_query()


def rebuild(driver: Driver) -> Rebuild:
    group = replace(driver.catalog.group("g").group, shards=2)
    source = RebuiltSource(stream="a", partition=0, topic_id="t", from_offset=4, to_offset=9)
    return Rebuild(
        rebuild_id="1",
        group=group,
        generation=2,
        history="aligned",
        made_us=0,
        is_complete=True,
        sources=(
            source,
            replace(source, partition=1, joins=True),
            replace(source, partition=HISTORY_PARTITIONS, topic_id="u"),
        ),
        shards=(RebuiltShard(shard=0, rows=1, batches=1), RebuiltShard(shard=1, rows=1, batches=1)),
    )


def command(made: Rebuild) -> RegenerateGroup:
    return RegenerateGroup("g", GroupSpec.of(made.group), rebuild=made)


def test_it_begins_where_its_log_does_with_the_partitions_that_were_there_from_the_beginning(driver: Driver) -> None:
    made = driver.do(command(rebuild(driver))).resource
    assert made == driver.catalog.group("g")
    resource = driver.catalog.group("g")
    assert (resource.generation, resource.group.shards) == (2, 2)
    assert resource.sources == (SourceStart("a", 0, 4, "t"),)


@pytest.mark.parametrize(
    ("change", "error", "why"),
    [
        (
            lambda its: replace(its, is_complete=False, shards=()),
            ConflictError,
            "is not complete; run it again with --res",
        ),
        (
            lambda its: replace(its, generation=3),
            ConflictError,
            "is of generation 3, but the next one of group 'g' is 2",
        ),
        (lambda its: replace(its, group=replace(its.group, name="h")), DefinitionError, "cannot be renamed"),
    ],
)
def test_another_one_is_refused(
    driver: Driver, change: Callable[[Rebuild], Rebuild], error: type[SkybandError], why: str
) -> None:
    with pytest.raises(error, match=why):
        driver.do(command(change(rebuild(driver))))
    assert driver.catalog.group("g").generation == 1


def test_streams_must_be_defined_as_they_were_rebuilt(driver: Driver) -> None:
    made = rebuild(driver)
    driver.do(UpdateStream(stream("a", hi=7.0)))
    with pytest.raises(ConflictError, match="stream 'a' is defined otherwise than in the rebuild; change it"):
        driver.do(command(made))
    streams = tuple(stream("a", hi=7.0) if its.name == "a" else its for its in made.group.streams)
    driver.do(command(replace(made, group=replace(made.group, streams=streams))))
    assert driver.catalog.group("g").generation == 2
