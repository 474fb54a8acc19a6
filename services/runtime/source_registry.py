"""Where the schemas of framed records come from: a mapping, or a Schema Registry over HTTP."""

import http.client
import json
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol
from urllib.parse import urlsplit

from skyband.errors import DefinitionError, LogError

__all__ = ["BundledSchemas", "RegistrySchemas", "SchemaSource", "http_fetch"]

_NOT_FOUND = 404
_NO_SCHEMA = 40403
_LONGEST_BYTES = 4 << 20

# Takes an address and gives the status and the body of the answer; raises OSError or HTTPException if there is none.
Fetch = Callable[[str], tuple[int, bytes]]


class SchemaSource(Protocol):
    """Knows schemas by id."""

    def get(self, schema_id: int) -> str | None:
        """Return the text of an Avro schema, or None if there is none of that id; LogError if that cannot be told."""


class BundledSchemas:
    """Schemas given beforehand, and another source for all others."""

    def __init__(self, schemas: Mapping[int, str], others: SchemaSource | None = None) -> None:
        self._schemas = dict(schemas)
        self._others = others

    def get(self, schema_id: int) -> str | None:
        """Return the text of a schema, or None; raise LogError if the other source does."""
        found = self._schemas.get(schema_id)
        return self._others.get(schema_id) if found is None and self._others else found


class RegistrySchemas:
    """Schemas of a Schema Registry, each asked for once and then kept; threads may share it.

    An id that the registry does not know is not asked for again for `unknown_for_s`. Records may hold any bytes as
    ids, so at most `most_unknown` of those that turned out unknown are asked for in a minute; above that, ids never
    heard of are unknown unasked, since waiting would let a few bad records stop all others. When the registry gives no
    answer, LogError is raised, and for `retry_s` without asking: its good records must wait, not be refused.

    Schemas with references to other schemas are not resolved: they are refused as schemas with unknown names.
    """

    def __init__(
        self,
        url: str,
        *,
        fetch: Fetch | None = None,
        unknown_for_s: float = 60.0,
        most_unknown: int = 60,
        retry_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
            raise DefinitionError(f"schema registry {url!r} is no address; write http://host:port or https://host")
        self._url = url.rstrip("/")
        self._fetch = fetch or _default_fetch
        self._unknown_for_s = unknown_for_s
        self._most_unknown = most_unknown
        self._retry_s = retry_s
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[int, str] = {}
        # Ids and when each was found unknown, oldest first; no longer than what is asked for in unknown_for_s.
        self._unknown: dict[int, float] = {}
        self._recent: deque[float] = deque(maxlen=most_unknown)
        self._failed: tuple[float, str] | None = None

    def get(self, schema_id: int) -> str | None:
        """Return the text of a schema, or None if it is unknown; raise LogError if the registry gives no answer."""
        if (found := self._known.get(schema_id)) is not None:
            return found
        with self._lock:
            now = self._clock()
            if (found := self._known.get(schema_id)) is not None or self._is_unknown(schema_id, now):
                return found
            if self._failed and now < self._failed[0] + self._retry_s:
                raise LogError(self._failed[1])
            found = self._ask(schema_id)
            if found is None:
                self._unknown[schema_id] = now
                self._recent.append(now)
            else:
                self._known[schema_id] = found
            return found

    def _is_unknown(self, schema_id: int, now: float) -> bool:
        for old, since in list(self._unknown.items()):
            if now < since + self._unknown_for_s:
                break
            del self._unknown[old]
        is_spent = len(self._recent) == self._most_unknown and now < self._recent[0] + 60.0
        return schema_id in self._unknown or is_spent

    def _ask(self, schema_id: int) -> str | None:
        address = f"{self._url}/schemas/ids/{schema_id}"
        try:
            status, body = self._fetch(address)
        except (OSError, http.client.HTTPException) as error:
            raise self._failure(f"schema {schema_id} cannot be asked for at {address}: {error}") from None
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        answer = answer if isinstance(answer, dict) else {}
        if status == _NOT_FOUND and answer.get("error_code") == _NO_SCHEMA:
            self._failed = None
            return None
        text = answer.get("schema")
        if status != 200 or not isinstance(text, str):
            raise self._failure(f"{address} answers {status} and no schema; check the registry's address and access")
        self._failed = None
        # A schema of another kind has nothing in common with Avro but the framing.
        return text if answer.get("schemaType", "AVRO") == "AVRO" else None

    def _failure(self, text: str) -> LogError:
        self._failed = (self._clock(), f"{text}; it is asked again")
        return LogError(self._failed[1])


def http_fetch(
    headers: Mapping[str, str] | None = None, *, context: ssl.SSLContext | None = None, timeout_s: float = 5.0
) -> Fetch:
    """Return what asks over HTTP with these headers (access goes there) and this TLS context."""
    sent = {"Accept": "application/vnd.schemaregistry.v1+json, application/json", **(headers or {})}

    def ask(address: str) -> tuple[int, bytes]:
        request = urllib.request.Request(address, headers=sent)
        try:
            with urllib.request.urlopen(request, timeout=timeout_s, context=context) as answer:
                return answer.status, answer.read(_LONGEST_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(_LONGEST_BYTES)

    return ask


_default_fetch = http_fetch()
