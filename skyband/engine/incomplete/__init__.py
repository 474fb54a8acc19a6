"""Rankings of streams that never line up, as published: one that keeps the window, and those that forget."""

from skyband.engine.incomplete.eaa import EaaStrict
from skyband.engine.incomplete.eaa_expected import EaaExpected
from skyband.engine.incomplete.eaa_relaxed import EaaRelaxed
from skyband.engine.incomplete.eaa_tail import EaaTail
from skyband.engine.incomplete.options import ApproximationOptions
from skyband.engine.incomplete.sla import SlaRanking

__all__ = ["ApproximationOptions", "EaaExpected", "EaaRelaxed", "EaaStrict", "EaaTail", "SlaRanking"]
