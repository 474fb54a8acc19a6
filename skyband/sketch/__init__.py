"""Sketch: aligned rows in, statistics of a group's streams out."""

from skyband.sketch.group_sketch import GroupSketch
from skyband.sketch.repetition import CountsOfCounts, SecondMoment
from skyband.sketch.sliding_fm import SlidingFM

__all__ = ["CountsOfCounts", "GroupSketch", "SecondMoment", "SlidingFM"]
