"""Control: the catalog of streams, groups and queries, their plans, and their state in words."""

from skyband.control.catalog import Catalog
from skyband.control.describe import describe
from skyband.control.explain import explain
from skyband.control.stage import ControlStage

__all__ = ["Catalog", "ControlStage", "describe", "explain"]
