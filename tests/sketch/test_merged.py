"""What shards have published, put together: as one shard of all rows would tell it."""

from dataclasses import replace

import pytest

from skyband.errors import ConflictError, DefinitionError, LogError, NotFoundError
from skyband.sketch.merged import merged_statistics
from skyband.sketch.publication import Publication
from tests.sketch.test_stage import GROUP, TUNING, S, Upstream, drain

FOUR = replace(GROUP, shards=4)
ONE = replace(GROUP, shards=1)


def publications(shards: int) -> list[Publication]:
    upstream = Upstream(shards=shards)
    stage = upstream.stage(shards=range(shards), tuning=replace(TUNING, sample_bytes=1 << 20))
    drain(stage)
    found = upstream.published()
    return [found[number] for number in range(shards)]


@pytest.mark.parametrize("window_us", [None, 5 * S, 20 * S])
def test_four_shards_tell_what_one_of_all_rows_tells(window_us: int | None) -> None:
    four = merged_statistics(FOUR, 1, publications(4), window_us)
    one = merged_statistics(ONE, 1, publications(1), window_us)
    assert four == one
    assert four.statistics.window_us == (window_us or 20 * S)
    assert (four.streams, four.attributes, four.source) == (("a", "b"), (("a",), ("b",)), "service")
    assert four.statistics.pair(0, 1).appearance is not None


def test_observations_are_counted() -> None:
    batches = Upstream()
    drain(stage := batches.stage())
    found = merged_statistics(ONE, 1, [batches.published()[0]])
    # The workload goes on for 37 s: the last 20 of them hold the rows of six steps and parts of two more.
    assert 20 * 10 * 2 - 60 < found.observations[0] < 20 * 10 * 2 + 60
    assert found.observations[0] == pytest.approx(2 * found.observations[1], rel=0.15)
    short = merged_statistics(ONE, 1, [batches.published()[0]], 5 * S)
    assert 0 < short.observations[0] < found.observations[0]
    assert stage.shards[0].rows == 1_080


def test_a_window_is_rounded_up_to_whole_panes() -> None:
    assert merged_statistics(ONE, 1, publications(1), S + 1).statistics.window_us == 2 * S


def test_shards_that_have_published_nothing_are_named() -> None:
    found = publications(4)
    assert merged_statistics(FOUR, 1, [found[1], found[3]]).silent_shards == (0, 2)


def test_before_anything_is_published_it_says_when_something_will_be() -> None:
    with pytest.raises(NotFoundError, match="the sketch service publishes every 5 s"):
        merged_statistics(GROUP, 1, [])


@pytest.mark.parametrize("window_us", [0, 21 * S])
def test_a_window_is_within_the_retention(window_us: int) -> None:
    with pytest.raises(DefinitionError, match="at most the group's retention, 20s"):
        merged_statistics(ONE, 1, publications(1), window_us)


def test_shards_of_different_settings_are_not_merged() -> None:
    upstream = Upstream(shards=2)
    for number in (0, 1):
        drain(upstream.stage(shards=(number,), tuning=replace(TUNING, bitmaps=16 << number)))
    with pytest.raises(ConflictError, match="the same SKYBAND_SKETCH_BITMAPS"):
        merged_statistics(replace(GROUP, shards=2), 1, list(upstream.published().values()))


def test_counts_that_do_not_fit_are_refused() -> None:
    (found,) = publications(1)
    with pytest.raises(LogError, match="are damaged"):
        merged_statistics(ONE, 1, [replace(found, observations=found.observations[:-1])])
