"""Early aggregation with tail bounds (ours): an instance goes once its chance to be shown falls below epsilon.

Its bound is the score that all but a share epsilon of the sampled objects of its pattern stay below, were their further
attributes its own. Epsilon 0 is the exact form.
"""

from skyband.engine.incomplete.foreseeing import ForeseeingRanking
from skyband.engine.incomplete.foresight import TAIL

__all__ = ["EaaTail"]


class EaaTail(ForeseeingRanking):
    """A relaxed ranking by tail bounds; see `ApproximationOptions`."""

    kind = TAIL
