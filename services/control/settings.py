"""Settings of control."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

__all__ = ["ControlSettings"]


class ControlSettings(BaseSettings):
    """What control reads from its environment, with the prefix SKYBAND_CONTROL_.

    `create_topics`: partitions of a source topic that a new group names and that does not exist (0: refuse the group).
    `results_address`: where clients find the results of queries (empty: at the same address as control).
    """

    model_config = SettingsConfigDict(env_prefix="SKYBAND_CONTROL_", frozen=True, extra="ignore")

    create_topics: int = Field(0, ge=0, le=1_000)
    results_address: str = ""
