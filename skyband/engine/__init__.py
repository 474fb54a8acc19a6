"""Engine: aligned batches in, rankings of one shard out."""

from skyband.engine.shard import Shard
from skyband.engine.stage import EngineStage

__all__ = ["EngineStage", "Shard"]
