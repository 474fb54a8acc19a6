"""Align: decoded rows of source partitions in, checked, timed and re-keyed batches out."""

from skyband.align.aligner import Aligner
from skyband.align.stage import AlignSettings, AlignStage

__all__ = ["AlignSettings", "AlignStage", "Aligner"]
