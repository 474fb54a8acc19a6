"""Benchmarks: measured, with bounds; never part of the tests."""
