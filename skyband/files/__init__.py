"""Definitions and rows from files and frames."""

from skyband.files.definitions import dump_definitions, load_definitions
from skyband.files.rows import open_rows

__all__ = ["dump_definitions", "load_definitions", "open_rows"]
