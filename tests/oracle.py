"""The truth that fast paths are compared with: the package's own brute force, which no other code of it uses."""

from skyband.local.brute_force import Partitions, Row, Seen, accepted
from skyband.local.brute_force import brute_force_results as oracle_results

__all__ = ["Partitions", "Row", "Seen", "accepted", "oracle_results"]
