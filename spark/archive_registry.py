"""The schema registry in a worker: asked for each schema once, whatever number of tasks the worker serves."""

from functools import lru_cache

from services.runtime.registry_settings import RegistrySettings
from services.runtime.source_registry import RegistrySchemas

__all__ = ["registry_of"]


@lru_cache(maxsize=1)
def registry_of(settings: RegistrySettings) -> RegistrySchemas | None:
    """Return what asks the registry, None without one. Raises DefinitionError for settings that cannot be."""
    return settings.schemas()
