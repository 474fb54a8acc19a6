"""Data structures of the hot path, one a file, with their kernels beside them."""

from skyband.structures.object_table import ObjectTable
from skyband.structures.skyband import Skyband
from skyband.structures.view import View
from skyband.structures.window_store import WindowStore

__all__ = ["ObjectTable", "Skyband", "View", "WindowStore"]
