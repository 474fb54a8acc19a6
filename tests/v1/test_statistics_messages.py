from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.model.published_statistics import PublishedStatistics
from skyband.model.statistics import Appearance, Estimate, GroupStatistics, PairStatistics, StreamStatistics
from skyband.v1 import control_pb2 as pb
from skyband.v1.messages import read_statistics, write_statistics
from tests.v1 import values

estimates = st.builds(Estimate, values.numbers, values.numbers)


@st.composite
def statistics(draw: st.DrawFn) -> PublishedStatistics:
    names = tuple(draw(st.lists(values.names, min_size=1, max_size=3, unique=True)))
    attributes = tuple(tuple(draw(st.lists(values.names, min_size=1, max_size=2))) for _ in names)
    five = st.tuples(*[values.numbers] * 5)
    streams = tuple(
        StreamStatistics(
            cardinality=draw(estimates),
            second_moment=draw(estimates),
            repetition_bound=draw(values.numbers),
            value_quantiles=tuple(draw(five) for _ in its) if draw(st.booleans()) else (),
        )
        for its in attributes
    )
    appearances = st.none() | st.builds(Appearance, values.numbers, values.numbers, values.offsets)
    lags = st.just(()) | st.tuples(*[values.event_times] * 3)
    pairs = tuple(
        PairStatistics(i, j, draw(appearances), draw(lags))
        for i in range(len(names))
        for j in range(len(names))
        if i != j
    )
    window_us = draw(st.integers(1, 2**40))
    return PublishedStatistics(
        group=draw(values.ids),
        generation=draw(st.integers(1, 2**31 - 1)),
        streams=names,
        attributes=attributes,
        observations=tuple(draw(values.offsets) for _ in names),
        from_us=draw(values.event_times),
        published_us=draw(values.times),
        source=draw(values.texts),
        silent_shards=tuple(draw(st.lists(st.integers(0, 4095), max_size=3))),
        statistics=GroupStatistics(
            at_us=draw(values.event_times),
            window_us=window_us,
            rate=draw(values.numbers),
            sampled_objects=draw(values.offsets),
            streams=streams,
            pairs=pairs,
        ),
    )


@settings(max_examples=60)
@given(statistics())
def test_statistics_come_back_from_their_message_as_they_were(found: PublishedStatistics) -> None:
    message = pb.GroupStatistics.FromString(write_statistics(found).SerializeToString())
    assert read_statistics(message) == found
