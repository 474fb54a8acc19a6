"""``python -m services.produce.results``: writes all results that Kafka keeps, and those to come, as JSON Lines.

As `skyband replay` writes them, straight from the topic, without fanout's service: what a demo compares. Ends when
nobody reads any more.
"""

import json
import sys
from collections.abc import Sequence

from services.runtime.codecs import Codecs
from services.runtime.kafka_log import KafkaLog
from services.runtime.settings import KafkaSettings
from skyband.cli.documents import result_document
from skyband.cli.failures import run_as_command
from skyband.log.record_log import Position
from skyband.model.result import Result

_TOPIC = "results"
_BATCH = 1_000
_WAIT_S = 0.2


def main(arguments: Sequence[str]) -> None:
    """Write results until nobody reads them."""
    log = KafkaLog(KafkaSettings(), Codecs())
    consumer = log.consumer()
    places = [Position(_TOPIC, partition) for partition in range(log.partitions(_TOPIC))]
    consumer.assign(dict(consumer.begin_offsets(places)))
    try:
        while True:
            for record in consumer.poll(_BATCH, _WAIT_S):
                found = record.value
                if isinstance(found, Result):
                    document = result_document(found.query, found.window_start, found.window_end, found.rows)
                    sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
            sys.stdout.flush()
    finally:
        consumer.close()


if __name__ == "__main__":
    sys.exit(run_as_command(main, sys.argv[1:]))
