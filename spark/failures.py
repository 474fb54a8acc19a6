"""What stopped Spark, as one sentence instead of its trace."""

import re

from skyband.errors import LogError

__all__ = ["stopped"]

_OWN = re.compile(r"skyband\.errors\.\w+: (.+)")
_LONGEST = 500


def stopped(error: object, then: str) -> LogError:
    """Return an error in the words of the task that raised it, or else in Spark's, with what to do `then`.

    >>> print(stopped("trace\\nskyband.errors.LogError: topic 'a' is gone; make it\\n at x.java", "start again"))
    topic 'a' is gone; make it
    >>> print(stopped("Job aborted\\n at x.java\\nCaused by: EOFException: a worker died\\n at y.java", "start again"))
    Spark could not go on: EOFException: a worker died; start again
    """
    text = str(error)
    if own := _OWN.findall(text):
        return LogError(own[-1].strip())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    said = (causes[-1:] or lines or ["no reason given"])[0]
    return LogError(f"Spark could not go on: {said[:_LONGEST]}; {then}")
