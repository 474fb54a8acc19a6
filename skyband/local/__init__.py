"""All stages in one process: replay, the demo, the small deployment."""

__all__: list[str] = []
