"""The schema registry as align knows it, in a form that travels to tasks."""

import ssl
from base64 import b64encode
from functools import lru_cache

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from services.runtime.source_registry import RegistrySchemas, http_fetch
from skyband.errors import DefinitionError

__all__ = ["RegistrySettings", "registry_of"]


class RegistrySettings(BaseSettings):
    """Where schemas of format confluent-avro are asked for: the settings of align, SKYBAND_ALIGN_REGISTRY…."""

    model_config = SettingsConfigDict(env_prefix="SKYBAND_ALIGN_", frozen=True, extra="ignore")

    registry: str = ""
    registry_username: str = ""
    registry_password: SecretStr = SecretStr("")
    registry_ca: str = ""


@lru_cache(maxsize=1)
def registry_of(settings: RegistrySettings) -> RegistrySchemas | None:
    """Return what asks the registry, None without one. Raises DefinitionError for settings that cannot be.

    A worker asks for each schema once, whatever number of tasks it serves.
    """
    if not settings.registry:
        return None
    headers = {}
    if settings.registry_username:
        access = f"{settings.registry_username}:{settings.registry_password.get_secret_value()}"
        headers["Authorization"] = f"Basic {b64encode(access.encode()).decode()}"
    try:
        context = ssl.create_default_context(cafile=settings.registry_ca) if settings.registry_ca else None
    except OSError as error:
        raise DefinitionError(
            f"registry_ca {settings.registry_ca!r} cannot be read: {error.strerror or error}", field="registry_ca"
        ) from None
    return RegistrySchemas(settings.registry, fetch=http_fetch(headers, context=context))
