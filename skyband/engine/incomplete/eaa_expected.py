"""Early aggregation with expected best scores: what was never seen counts what it can be expected to.

An attribute that an object has not shown counts ``worst + Pr(shown | what it has shown) * (best - worst)``. Keeps
little, and misses what beats its expectation; a memory budget lowers the chances further.
Source: Haghani et al., CIKM 2009, sec. 4.
"""

from skyband.engine.incomplete.foreseeing import ForeseeingRanking
from skyband.engine.incomplete.foresight import EXPECTED

__all__ = ["EaaExpected"]


class EaaExpected(ForeseeingRanking):
    """A relaxed ranking by expected best scores; `max_error` and `target_precision` do not matter to it."""

    kind = EXPECTED
