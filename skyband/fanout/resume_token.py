"""Resume tokens: where in the results a subscriber stands, as opaque text."""

import base64
import binascii
import struct
import zlib
from dataclasses import dataclass

from skyband.errors import DefinitionError
from skyband.model.duration import MIN_TIME_US

__all__ = ["ResultPosition", "ResumeToken"]

_VERSION = 1
_FIELDS = struct.Struct(">BIIqq")  # version, generation, partition, offset, window end; then the uid
_CHECKSUM = struct.Struct(">I")
_MAX_TEXT = 4096


@dataclass(frozen=True, slots=True)
class ResultPosition:
    """Where a record lies in the results topic."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class ResumeToken:
    """The result a subscriber was last given: query, generation, place in the results, window end.

    `window_end` None: nothing was given yet, and there was nothing for the query up to `position`.
    """

    uid: str
    generation: int
    position: ResultPosition
    window_end: int | None

    def encode(self) -> str:
        """Return the token as URL-safe text; its form is nobody else's business.

        >>> token = ResumeToken("q-1", 3, ResultPosition(0, 17), 60_000_000)
        >>> ResumeToken.decode(token.encode()) == token
        True
        """
        end = MIN_TIME_US if self.window_end is None else self.window_end
        fields = _FIELDS.pack(_VERSION, self.generation, self.position.partition, self.position.offset, end)
        body = fields + self.uid.encode()
        return base64.urlsafe_b64encode(body + _CHECKSUM.pack(zlib.crc32(body))).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> "ResumeToken":
        """Return the token that `text` stands for; raise DefinitionError if it is damaged or of another version."""
        try:
            if len(text) > _MAX_TEXT:
                raise ValueError
            data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            body, checksum = data[: -_CHECKSUM.size], data[-_CHECKSUM.size :]
            if _CHECKSUM.pack(zlib.crc32(body)) != checksum:
                raise ValueError
            version, generation, partition, offset, end = _FIELDS.unpack_from(body)
            if version != _VERSION:
                raise DefinitionError(
                    f"resume token has version {version}, this server reads {_VERSION}; subscribe without it",
                    field="resume_token",
                )
            window_end = None if end == MIN_TIME_US else end
            token = cls(body[_FIELDS.size :].decode(), generation, ResultPosition(partition, offset), window_end)
            if token.encode() != text:
                raise ValueError
        except (ValueError, struct.error, binascii.Error):
            raise DefinitionError(
                "resume token is damaged; pass it exactly as it was received, or subscribe without it",
                field="resume_token",
            ) from None
        return token
