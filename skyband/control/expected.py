"""The state of a query, in words: what its shards hold now, and what the statistics let one expect.

========================  ============================================================================================
algorithm                 expected
========================  ============================================================================================
two-tier, skyband         k (1 + ln(n/k)) of n objects or rows in each shard, on random order (Shen, Cheema et al., TKDE
                          2014); an object that was seen at several times has several instances, so that more are held
view                      from k to a few times k members, or some dozens: see `skyband/structures/view.py`
sla                       an entry for each object and attribute
eaa and what it became    no more than the observations: how many fewer depends on how complete objects are, and no
                          formula tells (Haghani et al., CIKM 2009, give the order of growth only)
========================  ============================================================================================

The first four stand on the store, which holds at most the observations.
"""

import math
from dataclasses import dataclass

from skyband.control.knowledge import Knowledge
from skyband.control.known_streams import estimated
from skyband.control.wording import count, plural, size
from skyband.model.binding import BoundQuery
from skyband.model.duration import format_duration
from skyband.model.group import Group
from skyband.model.plan import Plan
from skyband.model.published_statistics import PublishedStatistics
from skyband.model.query import Algorithm
from skyband.model.statistics import Estimate
from skyband.structures.coordinated_sample import LEAST_OBJECTS

__all__ = ["expected_state", "state_now"]

_Rows = list[tuple[str, str]]
_NOUNS = {
    Algorithm.TWO_TIER: "hot instance",
    Algorithm.SKYBAND: "row in rank order",
    Algorithm.VIEW: "candidate",
    Algorithm.SLA: "entry of the sorted lists",
}
_MANY = {Algorithm.SKYBAND: "rows in rank order", Algorithm.SLA: "entries of the sorted lists"}


@dataclass(frozen=True, slots=True)
class _Number:
    """A number between two bounds, 0 if there is none below; the same twice if it is estimated outright."""

    least: float
    most: float
    words: str


def state_now(plan: Plan, knowledge: Knowledge) -> _Rows:
    """Return what the shards report that they hold."""
    status, algorithm = knowledge.status, plan.algorithm
    if status is None or status.rows_in is None:
        return [("now", "not known yet: no shard has reported")]
    parts = [plural(status.hot, _NOUNS.get(algorithm, "instance"), _MANY.get(algorithm, ""))]
    if status.objects:
        parts.append(plural(status.objects, "object"))
    parts.append(f"{size(status.state_bytes)} of state with its group's store")
    text = f"{', '.join(parts)}; after {plural(status.rows_in, 'row')}"
    if status.silent_shards:
        text += f"; {plural(len(status.silent_shards), 'shard')} not heard of yet"
    return [("now", text)]


def expected_state(group: Group, bound: BoundQuery, plan: Plan, knowledge: Knowledge) -> _Rows:
    """Return what the statistics, or the number of rows of a count window, let one expect that the shards hold."""
    observations = _observations(group, bound, knowledge.statistics)
    if observations is None:
        return [("expected", "not known yet: it takes statistics of the streams")]
    if not observations.most:
        return [("expected", "nothing yet: no observation in the window")]
    match plan.algorithm:
        case Algorithm.TWO_TIER | Algorithm.VIEW:
            objects = _objects(group, bound, knowledge.statistics, observations)
            text = "not known yet: too few objects were seen"
            if objects is not None and plan.algorithm is Algorithm.TWO_TIER:
                text = _hot(group, bound, objects, "hot instances")
                text += "; more where objects have several instances, and between sweeps, fewer where many share a pane"
            elif objects is not None:
                text = f"{_candidates(bound)} in each shard, of {objects.words}"
        case Algorithm.SKYBAND:
            text = _hot(group, bound, observations, "rows in rank order") + "; more between sweeps"
        case Algorithm.SLA:
            text = _entries(bound, knowledge.statistics, observations)
        case _:
            text = f"at most an instance for each of {observations.words}, and for those since its last evaluation"
            return [("expected", f"{text}; how many fewer is not known beforehand")]
    store = f"the group's store: at most an entry for each of {observations.words}"
    if not bound.query.window.in_rows and (
        group.retention_us > bound.query.window.size or len(_streams(bound)) < len(group.streams)
    ):
        store += f"; and what else it keeps, {format_duration(group.retention_us)} of every stream"
    return [("expected", text), ("", store)]


def _streams(bound: BoundQuery) -> list[int]:
    return sorted({column.stream for column in bound.columns})


def _observations(group: Group, bound: BoundQuery, found: PublishedStatistics | None) -> _Number | None:
    """Return how many observations the window has on the streams of the query; they are counted, not estimated."""
    window = bound.query.window
    if window.in_rows:
        return _Number(float(window.size), float(window.size), f"the {plural(window.size, 'row')} of a full window")
    if found is None:
        return None
    total = sum(found.observations[stream] for stream in _streams(bound))
    noun = "record" if group.is_row_identity else "observation"
    return _Number(float(total), float(total), f"the {plural(total, noun)} of the window")


def _objects(
    group: Group, bound: BoundQuery, found: PublishedStatistics | None, observations: _Number
) -> _Number | None:
    """Return how many distinct objects the window has on the streams of the query together.

    Of one stream that is published, and of all streams it follows from the sample; of some of several only bounds do.
    """
    if found is None or bound.query.window.in_rows:
        return _Number(0.0, observations.most, f"at most {observations.most:,.0f} objects")
    streams = _streams(bound)
    if len(streams) == 1:
        return _exactly(found.statistics.streams[streams[0]].cardinality)
    together = _sampled(found)
    if len(streams) == len(group.streams):
        return None if together is None else _exactly(together)
    each = [found.statistics.streams[stream].cardinality.value for stream in streams]
    most = sum(each) if together is None else min(sum(each), together.value)
    least = min(max(each), most)
    return _Number(least, most, f"{least:,.0f} to {most:,.0f} objects")


def _exactly(estimate: Estimate) -> _Number:
    return _Number(estimate.value, estimate.value, estimated(estimate, "objects"))


def _sampled(found: PublishedStatistics) -> Estimate | None:
    """Return how many objects the window has on any stream of the group, from the share sampled; None: too few."""
    n, rate = found.statistics.sampled_objects, found.statistics.rate
    if rate >= 1.0:
        return Estimate(float(n), 0.0)
    if n < LEAST_OBJECTS:
        return None
    return Estimate(n / rate, math.sqrt(n * (1.0 - rate)) / rate)


def _hot(group: Group, bound: BoundQuery, number: _Number, noun: str) -> str:
    k, shards = bound.query.k, group.shards
    least, most = (_skyband(end / shards, k) * shards for end in (number.least, number.most))
    if least == most:
        text = f"about {most:,.0f}"
    else:
        text = f"{least:,.0f} to {most:,.0f}" if number.least else f"up to about {most:,.0f}"
    where = f" in each of {shards:,} shards, n/{shards} for n" if shards > 1 else ""
    return f"{text} {noun} where scores come in random order: k*(1 + ln(n/k)){where}, n = {number.words}"


def _skyband(n: float, k: int) -> float:
    """Return the expected size of a k-skyband of n on random order: all of them up to k."""
    return n if n <= k else k * (1.0 + math.log(n / k))


def _candidates(bound: BoundQuery) -> str:
    return f"from k = {bound.query.k:,} to a few times k candidates, or some dozens,"


def _entries(bound: BoundQuery, found: PublishedStatistics | None, observations: _Number) -> str:
    """Return how many entries the sorted lists have: each object once under each attribute of the score it has."""
    columns = [column for column in bound.columns if column.in_score]
    k = f"{_candidates(bound)} in each shard"
    if found is None or bound.query.window.in_rows:
        return f"at most {count(round(observations.most) * len(columns))} entries of the sorted lists, and {k}"
    each = [found.statistics.streams[column.stream].cardinality for column in columns]
    # The errors of two streams are not independent: both stem from the same hashes.
    total = Estimate(sum(one.value for one in each), sum(one.error for one in each))
    return f"{estimated(total, 'entries')} of the sorted lists, or fewer where streams are required, and {k}"
