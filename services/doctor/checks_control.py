"""Whether control and results answer, and how each query is doing, in control's own words."""

from collections.abc import Iterator

from services.doctor.finding import Finding, Level, Part
from skyband.client import Client
from skyband.client.calls import Description
from skyband.errors import NotFoundError, SkybandError
from skyband.model.query import QueryState
from skyband.model.resources import QueryResource

__all__ = ["check_control", "judge_query"]


def check_control(client: Client, address: str, time_zone: str) -> Iterator[Finding]:
    """Yield how the servers answer and how each query is doing."""
    try:
        queries = list(client.list_queries())
    except SkybandError as error:
        do = "skyband contexts list says where commands look; see that control runs, and what its log says"
        yield Finding(Part.CONTROL, Level.WRONG, str(error), do)
        return
    yield Finding(Part.CONTROL, Level.OK, f"control at {address} answers")
    if not queries:
        yield Finding(Part.CONTROL, Level.NOTE, "there is no query", "skyband queries add, or skyband apply -f FILE")
        return
    yield _results(client, queries[0])
    for query in queries:
        path = f"{query.group}/{query.query.name}"
        try:
            found = client.describe_query(path, time_zone=time_zone)
        except NotFoundError:
            # It was deleted meanwhile.
            continue
        except SkybandError as error:
            yield Finding(Part.CONTROL, Level.WRONG, f"{path}: {error}")
            continue
        yield judge_query(query, found)


def judge_query(query: QueryResource, found: Description) -> Finding:
    """Return what a description amounts to: why there is no output, if there is none."""
    words = dict(found.lines)
    headline = found.headline.removeprefix(query.query.name).strip()
    text = f"{query.group}/{query.query.name}: {headline}"
    if "why" in words:
        text += f"; {words['why']}"
    do = words.get("do", "")
    status = found.status
    is_wrong = any(shard.stopped for shard in status.shards) or headline.startswith(
        ("STARTING", "STOPPED", "ACTIVE, but")
    )
    if query.state is QueryState.PAUSED:
        level = Level.NOTE
    elif is_wrong:
        level = Level.WRONG
    else:
        level = Level.OK if headline.startswith("ACTIVE, up to date") else Level.NOTE
    return Finding(Part.CONTROL, level, text, "" if do.startswith("nothing") else do)


def _results(client: Client, query: QueryResource) -> Finding:
    try:
        client.get_result(f"{query.group}/{query.query.name}")
    except NotFoundError:
        # That there is none yet is an answer.
        pass
    except SkybandError as error:
        do = "see that fanout runs, and that its address is reached from here (SKYBAND_CONTROL_RESULTS_ADDRESS)"
        return Finding(Part.CONTROL, Level.WRONG, f"results: {error}", do)
    return Finding(Part.CONTROL, Level.OK, "results are served")
