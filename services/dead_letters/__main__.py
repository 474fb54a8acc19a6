"""``python -m services.dead_letters``: see README.md."""

import sys
from collections.abc import Iterator, Sequence

from rich.console import Console

from services.dead_letters.reader import TOPIC, Letter, Letters
from services.dead_letters.settings import LettersSettings, read_settings
from services.dead_letters.show import as_json, lines
from services.runtime.codecs import Codecs
from services.runtime.kafka_log import KafkaLog
from services.runtime.settings import read_kafka_settings
from skyband.cli.failures import run_as_command
from skyband.errors import LogError


def main(arguments: Sequence[str]) -> None:
    """Show what the arguments ask for."""
    settings = read_settings(arguments)
    kafka = read_kafka_settings()
    is_json = settings.output == "json" or (settings.output == "auto" and not sys.stdout.isatty())
    console = Console(highlight=False, soft_wrap=True)
    log = KafkaLog(kafka, Codecs())
    if log.is_missing(TOPIC):
        raise LogError(f"Kafka at {kafka.bootstrap} has no topic {TOPIC!r}: Skyband has never run there; see --kafka")
    letters = Letters(log, settings.stream)
    shown = 0
    try:
        for letter in _chosen(letters, settings):
            shown += 1
            if is_json:
                sys.stdout.write(as_json(letter) + "\n")
                sys.stdout.flush()
            else:
                console.print(lines(letter))
    finally:
        letters.close()
    if not shown and not is_json:
        of = f" of stream {settings.stream}" if settings.stream else ""
        sys.stderr.write(f"there are no dead letters{of}: all records were used\n")


def _chosen(letters: Letters, settings: LettersSettings) -> Iterator[Letter]:
    yield from letters.all() if settings.from_beginning else letters.newest(settings.number)
    if settings.follow:
        yield from letters.follow(lambda: False)


if __name__ == "__main__":
    sys.exit(run_as_command(main, sys.argv[1:]))
