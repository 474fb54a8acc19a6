"""Seeded workloads: streams that never line up, points, orders of scores."""

__all__: list[str] = []
