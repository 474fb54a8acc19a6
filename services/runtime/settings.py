"""How to reach Kafka, and how it is used: read once from the environment."""

from typing import Literal

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from skyband.errors import DefinitionError

__all__ = ["KafkaSettings", "read_kafka_settings"]

MIB = 1 << 20


class KafkaSettings(BaseSettings):
    """Settings of all clients of Kafka in a process, from SKYBAND_KAFKA_…; `extra` goes to librdkafka as it is.

    Of `extra`, given as a JSON object, the names are librdkafka's; they have the last word, but for what correctness
    rests on (see `kafka_consumer.py` and `kafka_producer.py`).
    """

    model_config = SettingsConfigDict(env_prefix="SKYBAND_KAFKA_", frozen=True, extra="ignore")

    bootstrap: str = Field("127.0.0.1:9092", min_length=1, description="Brokers to begin with: HOST:PORT, …")
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="What the listener of the brokers speaks"
    )
    sasl_mechanism: str = Field("", description="PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, … with SASL")
    sasl_username: str = Field("", description="User, with SASL")
    sasl_password: SecretStr = Field(SecretStr(""), description="Password, with SASL")
    ssl_ca_location: str = Field("", description="File of the certificates to trust; empty: those of the system")
    ssl_certificate_location: str = Field("", description="File of this client's certificate, if brokers ask for one")
    ssl_key_location: str = Field("", description="File of the key of that certificate")
    ssl_key_password: SecretStr = Field(SecretStr(""), description="Password of that key")
    extra: dict[str, str] = Field(default_factory=dict, description="More settings for librdkafka, as JSON")

    member: str = Field("", description="This process's stable name in consumer groups; empty: a new one each start")
    topic_prefix: str = Field("", description="Put before Skyband's own topics, groups and transactional ids")
    replication_factor: int = Field(-1, ge=-1, description="Copies of new topics; -1: as the brokers say")
    min_insync_replicas: int = Field(0, ge=0, description="Copies that must take a write; 0: as the brokers say")

    request_timeout_s: float = Field(10.0, gt=0, description="How long one request may take")
    unreachable_after_s: float = Field(
        30.0, gt=0, description="How long Kafka may be out of reach before readers and writers fail"
    )
    delivery_timeout_s: float = Field(60.0, gt=0, description="How long a record may take to be stored")
    transaction_timeout_s: float = Field(60.0, gt=0, description="When Kafka ends a transaction that nobody ends")
    max_poll_interval_s: float = Field(300.0, ge=1, description="How rarely a member may poll and stay in its group")
    session_timeout_s: float = Field(
        15.0, ge=6, description="How long a member that is silent, or restarts, keeps its partitions"
    )
    metadata_refresh_s: float = Field(3.0, gt=0, description="How often to look for new partitions and lost topics")
    fetch_wait_s: float = Field(0.1, ge=0, description="How long brokers hold back an empty answer to a reader")
    linger_s: float = Field(0.002, ge=0, description="How long records wait for others to be sent with")
    consumer_queue_bytes: int = Field(16 * MIB, ge=MIB, description="Most that one reader fetches ahead")
    producer_queue_bytes: int = Field(64 * MIB, ge=MIB, description="Most that waits in one writer to be stored")

    def client(self) -> dict[str, str | int | float | bool]:
        """Return the settings, by librdkafka's names, that every client has: where to connect, and as whom."""
        named = {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": self.security_protocol,
            "sasl.mechanism": self.sasl_mechanism,
            "sasl.username": self.sasl_username,
            "sasl.password": self.sasl_password.get_secret_value(),
            "ssl.ca.location": self.ssl_ca_location,
            "ssl.certificate.location": self.ssl_certificate_location,
            "ssl.key.location": self.ssl_key_location,
            "ssl.key.password": self.ssl_key_password.get_secret_value(),
        }
        # Broken connections are told by error callbacks; librdkafka would write each attempt to stderr, ten a second.
        return {"log_level": 1, **{name: value for name, value in named.items() if value}, **self.extra}


def read_kafka_settings() -> KafkaSettings:
    """Return what the environment says, for commands. Raises DefinitionError for a setting that is wrong."""
    try:
        return KafkaSettings()
    except ValidationError as error:
        raise DefinitionError(f"a setting SKYBAND_KAFKA_… is wrong: {error.errors()[0]['msg']}") from None
