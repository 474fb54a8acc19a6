"""Seeded workloads: streams that never line up, points, orders of scores, bursts and drifts."""

__all__: list[str] = []
