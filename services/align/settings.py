"""Settings of align."""

from pydantic import Field

from services.runtime.registry_settings import RegistrySettings

__all__ = ["AlignServiceSettings"]


class AlignServiceSettings(RegistrySettings):
    """What align reads from its environment, with the prefix SKYBAND_ALIGN_; see RegistrySettings for the registry.

    `batch_rows` and `flush_ms` bound what waits before it is written, `commit_ms` what is read again after a crash,
    `poll_records` what one poll brings.
    """

    batch_rows: int = Field(20_000, ge=1)
    flush_ms: int = Field(25, ge=0)
    commit_ms: int = Field(500, ge=0)
    poll_records: int = Field(20_000, ge=1)
