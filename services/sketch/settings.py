"""Settings of sketch."""

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

__all__ = ["SketchSettings"]


class SketchSettings(BaseSettings):
    """What sketch reads from its environment, with the prefix SKYBAND_SKETCH_.

    `publish_s`: how often a shard publishes; `bitmaps`, a power of two: of each stream, 256 bytes each, for an error of
    0.68/sqrt(bitmaps) in the number of objects; `sample_bytes`: of each stream, for the sample of its objects.
    """

    model_config = SettingsConfigDict(env_prefix="SKYBAND_SKETCH_", frozen=True, extra="ignore")

    publish_s: float = Field(5.0, gt=0)
    bitmaps: int = Field(64, ge=2, le=65_536)
    sample_bytes: int = Field(20_000, ge=1_000, le=10_000_000)

    @field_validator("bitmaps")
    @classmethod
    def _power_of_two(cls, value: int) -> int:
        if value & (value - 1):
            below = 1 << value.bit_length() - 1
            raise ValueError(f"{value} is no power of two; use {below} or {2 * below}")
        return value
