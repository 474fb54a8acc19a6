"""The same brokers, the same user, in the Java client's words."""

import pytest
from pydantic import SecretStr

from services.runtime.settings import KafkaSettings
from skyband.errors import DefinitionError
from spark.kafka_security import java_client

KEY, OLD_KEY = "-----BEGIN PRIVATE KEY-----\n", "-----BEGIN RSA PRIVATE KEY-----\n"
FILES = {"ca.pem": "the authority", "own.pem": "the chain", "key.pem": KEY, "old.pem": OLD_KEY}


def client(**settings: object) -> dict[str, str]:
    return java_client(KafkaSettings(bootstrap="one:9092,two:9092", **settings), FILES.__getitem__)  # type: ignore[arg-type]


def test_a_plain_listener_needs_no_more_than_its_address() -> None:
    assert client() == {"bootstrap.servers": "one:9092,two:9092", "security.protocol": "PLAINTEXT"}


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", "plain.PlainLoginModule"), ("SCRAM-SHA-512", "scram.ScramLoginModule")],
)
def test_a_user_logs_in_with_a_password_of_any_signs(mechanism: str, module: str) -> None:
    found = client(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_username="ada",
        sasl_password=SecretStr('a"b\\c;'),
    )
    assert found["sasl.mechanism"] == mechanism
    assert found["sasl.jaas.config"] == (
        f"org.apache.kafka.common.security.{module} required" r' username="ada" password="a\"b\\c;";'
    )


def test_certificates_are_given_as_text_since_executors_have_no_such_files() -> None:
    found = client(
        security_protocol="SSL",
        ssl_ca_location="ca.pem",
        ssl_certificate_location="own.pem",
        ssl_key_location="key.pem",
        ssl_key_password=SecretStr("secret"),
    )
    assert found == {
        "bootstrap.servers": "one:9092,two:9092",
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "the authority",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "the chain",
        "ssl.keystore.key": KEY,
        "ssl.key.password": "secret",
    }


def test_of_librdkafkas_own_settings_those_of_speed_are_left_out_and_those_of_trust_are_translated() -> None:
    extra = {"session.timeout.ms": "6000", "ssl.endpoint.identification.algorithm": "none"}
    assert client(extra=extra).keys() - client().keys() == {"ssl.endpoint.identification.algorithm"}
    assert client(extra=extra)["ssl.endpoint.identification.algorithm"] == ""


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}, "SASL_MECHANISM is 'GSSAPI'.*use one of PLAIN"),
        ({"security_protocol": "SASL_SSL"}, "SASL_MECHANISM is ''"),
        ({"security_protocol": "SSL", "ssl_key_location": "key.pem"}, "belong together"),
        (
            {"security_protocol": "SSL", "ssl_key_location": "old.pem", "ssl_certificate_location": "own.pem"},
            "'old.pem' is not in PKCS #8",
        ),
        ({"extra": {"enable.ssl.certificate.verification": "false"}}, "sets 'enable.ssl.certificate.verification'"),
    ],
)
def test_what_the_java_client_cannot_do_is_refused_with_what_to_do(settings: dict[str, object], said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        client(**settings)


def test_a_file_that_is_not_there_is_named() -> None:
    settings = KafkaSettings(security_protocol="SSL", ssl_ca_location="nowhere/ca.pem")
    with pytest.raises(DefinitionError, match=r"cannot read 'nowhere/ca\.pem'.*SKYBAND_KAFKA_SSL_"):
        java_client(settings)
