"""Settings of align."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

__all__ = ["AlignServiceSettings"]


class AlignServiceSettings(BaseSettings):
    """What align reads from its environment, with the prefix SKYBAND_ALIGN_.

    `batch_rows` and `flush_ms` bound what waits before it is written; `registry` is the address of a schema registry
    for streams of format confluent-avro (empty: none).
    """

    model_config = SettingsConfigDict(env_prefix="SKYBAND_ALIGN_", frozen=True, extra="ignore")

    batch_rows: int = Field(20_000, ge=1)
    flush_ms: int = Field(50, ge=0)
    registry: str = ""
