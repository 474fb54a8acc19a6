"""Settings of the engine."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

__all__ = ["EngineSettings"]


class EngineSettings(BaseSettings):
    """What the engine reads from its environment, with the prefix SKYBAND_ENGINE_.

    `max_pending_mb`: most that the rows of a shard that wait for time may take; `report_ms`: how often a shard tells
    how far it is; `checkpoint_s`: how often it writes from where a restart may go on.
    """

    model_config = SettingsConfigDict(env_prefix="SKYBAND_ENGINE_", frozen=True, extra="ignore")

    max_pending_mb: int = Field(1_024, ge=1)
    report_ms: int = Field(200, ge=10)
    checkpoint_s: float = Field(5.0, gt=0)
