"""When a query was evaluated, as the aligned log lets one know: from when on it must show what, and where it may.

A change of a query takes hold on a shard at the first window end that the shard has not passed when the change comes;
shards need not agree, and while all sources are idle a shard may have gone one end further. So each change has a *zone*
[low, high) of window ends in which it may or may not hold yet::

    revision 1: active   zone    revision 2: paused      zone  revision 3: active
    ─────────────────────[    )──────────────────────────[  )──────────────────
    DUE                   MAYBE  NOT                     MAYBE DUE
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from skyband.model.catalog import QueryChange
from skyband.model.duration import MIN_TIME_US
from skyband.model.query import QueryState

__all__ = ["Activity", "Passed", "Status", "Zone", "first_after", "from_before", "zones_of"]


class Status(Enum):
    """What is due at a window end: a result, perhaps one, none; or that is not to be known."""

    DUE = "due"
    MAYBE = "maybe"
    NOT = "not"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Passed:
    """How far one shard had come when a change reached it.

    `point`: its frontier, or how many rows it had numbered (MIN_TIME_US: nothing). `settled_us` as in progress.
    """

    change: QueryChange
    shard: int
    point: int
    settled_us: int = MIN_TIME_US


@dataclass(frozen=True, slots=True)
class Zone:
    """Where one revision begins to hold: at the latest at `high`, nowhere below `low`."""

    revision: int
    low: int
    high: int
    k: int
    active: bool


@dataclass(frozen=True, slots=True)
class Activity:
    """The zones of one query by revision. `is_whole`: nothing came before the first of them."""

    zones: tuple[Zone, ...]
    is_whole: bool

    def at(self, window_end: int) -> tuple[Status, frozenset[int]]:
        """Return what is due at a window end, and which k may hold there."""
        settled = [zone for zone in self.zones if zone.high <= window_end][-1:]
        open_ = [zone for zone in self.zones if zone.low <= window_end < zone.high]
        possible = [zone for zone in open_ if not settled or zone.revision > settled[0].revision]
        if not settled and not self.is_whole:
            return Status.UNKNOWN, frozenset()
        ks = frozenset(zone.k for zone in [*settled, *possible] if zone.active)
        if not ks:
            return Status.NOT, ks
        if any(not zone.active for zone in [*settled, *possible]) or not settled:
            return Status.MAYBE, ks
        return Status.DUE, ks

    @property
    def largest_k(self) -> int:
        """The largest k that ever held."""
        return max((zone.k for zone in self.zones), default=0)


def first_after(step: int, point: int) -> int:
    """Return the first multiple of `step` above `point`."""
    return (point // step + 1) * step


def zones_of(seen: Iterable[Passed], shards: int, *, may_wait: bool) -> tuple[Zone, ...]:
    """Return the zones of one query's changes, each as the shards that show it saw it.

    `may_wait`: a query that begins may wait until its shard has seen a whole window (something here forgets rows).
    """
    by_revision: dict[int, list[Passed]] = {}
    for its in seen:
        by_revision.setdefault(its.change.revision, []).append(its)
    zones: list[Zone] = []
    was_active = False
    for revision, told in sorted(by_revision.items()):
        change = told[0].change
        lows, highs = zip(*(_ends(its, may_wait=may_wait) for its in told), strict=True)
        is_active = change.state is QueryState.ACTIVE
        begins = is_active and not was_active
        # What begins does so with the last shard; what changes or ends may do so with the first.
        low = max(lows) if begins and len(lows) == shards else min(lows)
        zones.append(Zone(revision, low, max(highs), change.query.k, is_active))
        was_active = is_active
    return tuple(zones)


def _ends(its: Passed, *, may_wait: bool) -> tuple[int, int]:
    window = its.change.query.window
    if its.point == MIN_TIME_US:
        return MIN_TIME_US, MIN_TIME_US
    low = first_after(window.slide, its.point)
    passed = its.point
    if its.settled_us != MIN_TIME_US and not window.in_rows:
        passed = max(passed, first_after(window.slide, its.settled_us))
    if may_wait:
        passed += window.size - 1
    return low, first_after(window.slide, passed)


def from_before(change: QueryChange) -> tuple[Zone, ...]:
    """Return the zone of a change that lies before all that the aligned log still has."""
    active = change.state is QueryState.ACTIVE
    return (Zone(change.revision, MIN_TIME_US, MIN_TIME_US, change.query.k, active),)
