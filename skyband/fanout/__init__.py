"""Fanout: rankings of all shards in, each result once out, to the log and to subscribers."""

from skyband.fanout.log_committer import LogCommitter
from skyband.fanout.merge_stage import MergeStage, ServedGroup
from skyband.fanout.merger import Merger
from skyband.fanout.stage import FanoutStage, FanoutTopics
from skyband.fanout.subscription import Subscription, Update
from skyband.model.deltas import apply_deltas, deltas

__all__ = [
    "FanoutStage",
    "FanoutTopics",
    "LogCommitter",
    "MergeStage",
    "Merger",
    "ServedGroup",
    "Subscription",
    "Update",
    "apply_deltas",
    "deltas",
]
