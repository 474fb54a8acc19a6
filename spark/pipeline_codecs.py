"""What turns bytes into values and back; a worker makes it once.

Apart from the plan: that travels to processes that ask an operator only which state it has, and need none of this.
"""

from functools import lru_cache

from services.runtime.codecs import Codecs
from services.runtime.registry_settings import RegistrySettings
from services.runtime.source_decoder import SourceDecoder, make_decoder
from skyband.model.stream import Stream
from spark.archive_registry import registry_of

__all__ = ["codecs", "decoder_of"]


@lru_cache(maxsize=1)
def codecs() -> Codecs:
    """Return the codecs of all topics."""
    return Codecs()


@lru_cache(maxsize=256)
def decoder_of(stream: Stream, registry: RegistrySettings | None) -> SourceDecoder:
    """Return what decodes a stream's records. Raises DefinitionError for a stream that cannot be decoded."""
    return make_decoder(stream, None if registry is None else registry_of(registry))
