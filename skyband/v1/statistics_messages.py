"""Statistics of a group's streams, as messages."""

from collections.abc import Sequence

from skyband.model.published_statistics import PublishedStatistics
from skyband.model.resources import group_name, stream_name
from skyband.model.statistics import Appearance, Estimate, GroupStatistics, PairStatistics, StreamStatistics
from skyband.v1 import control_pb2
from skyband.v1.names import group_id, stream_reference
from skyband.v1.times import timestamp, timestamp_us

__all__ = ["read_statistics", "write_statistics"]


def write_statistics(published: PublishedStatistics) -> control_pb2.GroupStatistics:
    """Return the message of a group's statistics."""
    found, names = published.statistics, published.streams
    told = zip(names, published.attributes, published.observations, found.streams, strict=True)
    return control_pb2.GroupStatistics(
        name=group_name(published.group),
        generation=published.generation,
        window_start=found.at_us - found.window_us,
        window_end=found.at_us,
        known_from_us=published.from_us,
        sampled_share=found.rate,
        sampled_objects=found.sampled_objects,
        streams=[_write_stream(*one) for one in told],
        pairs=[_write_pair(pair, names) for pair in found.pairs],
        publish_time=timestamp(published.published_us),
        source=published.source,
        silent_shards=published.silent_shards,
        other_sources=published.other_sources,
    )


def read_statistics(message: control_pb2.GroupStatistics) -> PublishedStatistics:
    """Return the statistics that a server has sent. Raises DefinitionError if they make no sense."""
    names = tuple(stream_reference(one.stream, "streams.stream") for one in message.streams)
    return PublishedStatistics(
        group=group_id(message.name),
        generation=message.generation,
        streams=names,
        attributes=tuple(tuple(its.attribute for its in one.attributes) for one in message.streams),
        observations=tuple(one.observations for one in message.streams),
        from_us=message.known_from_us,
        published_us=timestamp_us(message.publish_time, "publish_time"),
        source=message.source,
        silent_shards=tuple(message.silent_shards),
        statistics=GroupStatistics(
            at_us=message.window_end,
            window_us=message.window_end - message.window_start,
            rate=message.sampled_share,
            sampled_objects=message.sampled_objects,
            streams=tuple(_read_stream(one) for one in message.streams),
            pairs=tuple(_read_pair(pair, names) for pair in message.pairs),
        ),
        other_sources=tuple(message.other_sources),
    )


def _write_estimate(estimate: Estimate) -> control_pb2.Estimate:
    return control_pb2.Estimate(value=estimate.value, error=estimate.error)


def _read_estimate(message: control_pb2.Estimate) -> Estimate:
    return Estimate(message.value, message.error)


def _write_stream(
    name: str, attributes: Sequence[str], observations: int, told: StreamStatistics
) -> control_pb2.StreamStatistics:
    known = told.value_quantiles or ((),) * len(attributes)
    return control_pb2.StreamStatistics(
        stream=stream_name(name),
        objects=_write_estimate(told.cardinality),
        observations=observations,
        second_moment=_write_estimate(told.second_moment),
        repetition_bound=told.repetition_bound,
        attributes=[
            control_pb2.AttributeStatistics(attribute=attribute, quantiles=quantiles)
            for attribute, quantiles in zip(attributes, known, strict=True)
        ],
    )


def _read_stream(message: control_pb2.StreamStatistics) -> StreamStatistics:
    return StreamStatistics(
        cardinality=_read_estimate(message.objects),
        second_moment=_read_estimate(message.second_moment),
        repetition_bound=message.repetition_bound,
        value_quantiles=tuple(tuple(its.quantiles) for its in message.attributes if its.quantiles),
    )


def _write_pair(pair: PairStatistics, names: Sequence[str]) -> control_pb2.PairStatistics:
    told = pair.appearance
    return control_pb2.PairStatistics(
        given=stream_name(names[pair.given]),
        stream=stream_name(names[pair.stream]),
        appearance=None if told is None else control_pb2.Estimate(value=told.probability, error=told.error),
        objects=0 if told is None else told.objects,
        lag_us=pair.lag_us,
    )


def _read_pair(message: control_pb2.PairStatistics, names: Sequence[str]) -> PairStatistics:
    told = message.appearance
    return PairStatistics(
        given=names.index(stream_reference(message.given, "pairs.given")),
        stream=names.index(stream_reference(message.stream, "pairs.stream")),
        appearance=Appearance(told.value, told.error, message.objects) if message.HasField("appearance") else None,
        lag_us=tuple(message.lag_us),
    )
