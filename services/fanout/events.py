"""Names of the events that fanout logs beside those of every process: none."""

__all__: list[str] = []
