"""``python -m services.produce.forget PREFIX``: removes what `skyband demo --kafka` has made, and nothing else.

Topics and consumer groups whose names begin with a prefix that only the demo gives.
"""

import re
import sys
from collections.abc import Sequence

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from services.runtime.kafka_errors import Doing, cause_of, explain
from services.runtime.settings import KafkaSettings
from skyband.cli.failures import run_as_command
from skyband.errors import DefinitionError

_PREFIX = re.compile(r"demo-[0-9a-f]{8}-")


def forget(settings: KafkaSettings, prefix: str) -> int:
    """Remove topics and groups that begin with `prefix`; return how many topics. Raises LogError if that fails."""
    if not _PREFIX.fullmatch(prefix):
        raise DefinitionError(f"{prefix!r} is no prefix of a demo; those are demo-, eight digits, and -")
    admin = AdminClient(dict(settings.client()))
    timeout_s = settings.request_timeout_s
    try:
        names = [name for name in admin.list_topics(timeout=timeout_s).topics if name.startswith(prefix)]
        if names:
            for done in admin.delete_topics(names, request_timeout=timeout_s).values():
                done.result()
        listed = admin.list_consumer_groups(request_timeout=timeout_s).result()
        groups = [group.group_id for group in listed.valid if group.group_id.startswith(prefix)]
        if groups:
            for done in admin.delete_consumer_groups(groups, request_timeout=timeout_s).values():
                done.result()
    except KafkaException as error:
        doing = Doing(f"remove what begins with {prefix!r}", settings.bootstrap)
        raise explain(cause_of(error), doing) from error
    return len(names)


def main(arguments: Sequence[str]) -> None:
    """Remove what begins with the prefix."""
    if len(arguments) != 1:
        raise DefinitionError("name one prefix, as in demo-0a1b2c3d-")
    forget(KafkaSettings(), arguments[0])


if __name__ == "__main__":
    sys.exit(run_as_command(main, sys.argv[1:]))
