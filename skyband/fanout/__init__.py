"""Fanout: rankings of all shards in, each result once out, to the log and to subscribers."""

from skyband.fanout.deltas import apply_deltas, deltas
from skyband.fanout.merger import Merger
from skyband.fanout.stage import FanoutStage
from skyband.fanout.subscription import Subscription, Update

__all__ = ["FanoutStage", "Merger", "Subscription", "Update", "apply_deltas", "deltas"]
