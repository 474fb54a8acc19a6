"""The results of a query that may have been made a moment ago."""

import time
from collections.abc import Callable, Iterator

from skyband.client import Client, Update
from skyband.errors import NotFoundError

__all__ = ["follow"]

# How long it may take until who serves results has heard of a query that control knows.
_HEARD_S = 10.0
_PAUSE_S = 0.1


def follow(
    client: Client,
    path: str,
    *,
    progress: bool = False,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Update]:
    """Yield the results of a query as `Client.subscribe` does, also if it is so new that fanout does not know it yet.

    Raises NotFoundError if control does not know it, or not any more.
    """
    give_up_s = clock() + _HEARD_S
    while True:
        try:
            yield from client.subscribe(path, progress=progress)
        except NotFoundError:
            # Raises as well, for one that is deleted.
            client.query(path)
            if clock() > give_up_s:
                raise
        sleep(_PAUSE_S)
