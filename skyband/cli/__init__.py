"""The `skyband` command."""

__all__: list[str] = []
