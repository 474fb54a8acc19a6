"""Where Kafka is and as whom to go there, in the words of its Java client; the settings are those of the services."""

from collections.abc import Callable, Mapping
from pathlib import Path

from services.runtime.settings import KafkaSettings
from skyband.errors import DefinitionError

__all__ = ["java_client"]

_LOGIN = "org.apache.kafka.common.security.{module} required username={user} password={password};"
_MODULES = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "SCRAM-SHA-512": "scram.ScramLoginModule",
}
# Of `extra`, what decides whether a connection is safe, in the Java client's words; all else of it tunes librdkafka.
_DECIDES = ("ssl.", "sasl.", "security.", "enable.ssl.", "enable.sasl.")
_SAME = {"ssl.endpoint.identification.algorithm": {"none": "", "https": "https"}}


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise DefinitionError(f"cannot read {path!r} ({error}); see the SKYBAND_KAFKA_SSL_… settings") from error


def java_client(settings: KafkaSettings, read: Callable[[str], str] = _read) -> dict[str, str]:
    """Return the settings of Kafka's Java client that reach the same brokers as the same user.

    `read` gives the text of a file of certificates or keys (PEM): executors get the text, as they may not have the
    file. Without certificates of its own the client trusts those of its Java. Raises DefinitionError for what the Java
    client cannot do, and for half a pair.
    """
    return {
        "bootstrap.servers": settings.bootstrap,
        "security.protocol": settings.security_protocol,
        **_user(settings),
        **_certificates(settings, read),
        **_more(settings.extra),
    }


def _user(settings: KafkaSettings) -> dict[str, str]:
    if not settings.security_protocol.startswith("SASL"):
        return {}
    module = _MODULES.get(settings.sasl_mechanism)
    if module is None:
        raise DefinitionError(
            f"SKYBAND_KAFKA_SASL_MECHANISM is {settings.sasl_mechanism!r}, with which Spark jobs cannot log in; "
            f"let them use one of {', '.join(_MODULES)}"
        )
    login = _LOGIN.format(
        module=module,
        user=_quoted(settings.sasl_username),
        password=_quoted(settings.sasl_password.get_secret_value()),
    )
    return {"sasl.mechanism": settings.sasl_mechanism, "sasl.jaas.config": login}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _certificates(settings: KafkaSettings, read: Callable[[str], str]) -> dict[str, str]:
    if not settings.security_protocol.endswith("SSL"):
        return {}
    chosen: dict[str, str] = {}
    if settings.ssl_ca_location:
        chosen |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": read(settings.ssl_ca_location)}
    certificate, key = settings.ssl_certificate_location, settings.ssl_key_location
    if bool(certificate) != bool(key):
        raise DefinitionError(
            "SKYBAND_KAFKA_SSL_CERTIFICATE_LOCATION and SKYBAND_KAFKA_SSL_KEY_LOCATION belong together; "
            "give both, or neither"
        )
    if certificate:
        chosen |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": read(certificate),
            "ssl.keystore.key": _java_key(read(key), key),
        }
        if password := settings.ssl_key_password.get_secret_value():
            chosen["ssl.key.password"] = password
    return chosen


def _java_key(text: str, path: str) -> str:
    """Return a key as it is, if it has the one form that the Java client reads."""
    if "-----BEGIN PRIVATE KEY-----" in text or "-----BEGIN ENCRYPTED PRIVATE KEY-----" in text:
        return text
    raise DefinitionError(
        f"the key in {path!r} is not in PKCS #8, the only form that Spark jobs read; "
        "write it anew with `openssl pkcs8 -topk8`, which suits services too"
    )


def _more(extra: Mapping[str, str]) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for name, value in extra.items():
        if name in _SAME and value in _SAME[name]:
            chosen[name] = _SAME[name][value]
        elif name.startswith(_DECIDES):
            raise DefinitionError(
                f"SKYBAND_KAFKA_EXTRA sets {name!r}, which Spark jobs cannot follow; set what it does by the settings "
                "SKYBAND_KAFKA_SSL_… and SKYBAND_KAFKA_SASL_…, or leave it out for them"
            )
    return chosen
