"""Where schemas of format confluent-avro are asked for: settings of align, which jobs read, too."""

import ssl
from base64 import b64encode

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from services.runtime.source_registry import RegistrySchemas, http_fetch
from skyband.errors import DefinitionError

__all__ = ["RegistrySettings"]


class RegistrySettings(BaseSettings):
    """What is read from the environment with the prefix SKYBAND_ALIGN_.

    `registry` is the address of a schema registry for streams of format confluent-avro (empty: none); it is asked with
    `registry_username` and `registry_password` if given, and trusted if a certificate of the file `registry_ca` (empty:
    of the system) says so.
    """

    model_config = SettingsConfigDict(env_prefix="SKYBAND_ALIGN_", frozen=True, extra="ignore")

    registry: str = ""
    registry_username: str = ""
    registry_password: SecretStr = SecretStr("")
    registry_ca: str = ""

    def schemas(self) -> RegistrySchemas | None:
        """Return what asks the registry, or None without one. Raises DefinitionError for settings that cannot be."""
        if not self.registry:
            return None
        headers = {}
        if self.registry_username:
            access = f"{self.registry_username}:{self.registry_password.get_secret_value()}"
            headers["Authorization"] = f"Basic {b64encode(access.encode()).decode()}"
        try:
            context = ssl.create_default_context(cafile=self.registry_ca) if self.registry_ca else None
        except OSError as error:
            raise DefinitionError(
                f"registry_ca {self.registry_ca!r} cannot be read: {error.strerror or error}", field="registry_ca"
            ) from None
        return RegistrySchemas(self.registry, fetch=http_fetch(headers, context=context))
