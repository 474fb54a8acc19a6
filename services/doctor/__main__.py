"""``python -m services.doctor``: see README.md."""

import sys
from collections.abc import Sequence

from rich.console import Console

from services.doctor.examine import examine
from services.doctor.finding import Level
from services.doctor.settings import read_settings
from services.doctor.show import as_json, line, summary
from services.runtime.settings import read_kafka_settings
from skyband.cli.contexts import chosen_context
from skyband.cli.failures import FAILED, run_as_command
from skyband.cli.remote import on_retry, time_zone


def main(arguments: Sequence[str]) -> None:
    """Examine, and exit with 1 if something is wrong."""
    settings = read_settings(arguments)
    kafka = read_kafka_settings()
    is_json = settings.output == "json" or (settings.output == "auto" and not sys.stdout.isatty())
    console = Console(highlight=False, soft_wrap=True)
    # What is tried again is none of a person's business here: what comes of it is a finding.
    on_retry(lambda error, attempt: None)
    levels: list[Level] = []
    for finding in examine(kafka, chosen_context(), settings.parts, time_zone()):
        levels.append(finding.level)
        if is_json:
            sys.stdout.write(as_json(finding) + "\n")
            sys.stdout.flush()
        else:
            console.print(line(finding))
    if not is_json:
        console.print(summary(levels))
    if Level.WRONG in levels:
        sys.exit(FAILED)


if __name__ == "__main__":
    sys.exit(run_as_command(main, sys.argv[1:]))
