"""Settings of fanout."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

__all__ = ["FanoutSettings"]


class FanoutSettings(BaseSettings):
    """What fanout reads from its environment, with the prefix SKYBAND_FANOUT_.

    `tail_offsets`: how many records of each partition of the results it reads at its start; `search_s`: how long it
    looks for a result that is older.
    """

    model_config = SettingsConfigDict(env_prefix="SKYBAND_FANOUT_", frozen=True, extra="ignore")

    tail_offsets: int = Field(10_000, ge=0)
    search_s: float = Field(5.0, gt=0)
