"""``spark-submit … spark/submit.py JOB …``: runs a job where `spark-submit` says, as ``python -m spark.JOB`` does here.

One program for all jobs: `spark-submit` puts the folder of its program first on the path, where the modules of this
folder would stand for others of the same names (`statistics`).
"""

import importlib
import sys
from pathlib import Path

__all__ = ["JOBS", "submitted"]

JOBS = ("archive", "audit", "pipeline", "rebuild", "statistics")


def submitted(arguments: list[str]) -> int:
    """Run the job that comes first with the arguments behind it, and return the exit code."""
    if not arguments or arguments[0] not in JOBS:
        sys.stderr.write(f"say which job to run, one of {', '.join(JOBS)}: spark-submit spark/submit.py JOB …\n")
        return 2
    from skyband.cli.failures import run_as_command

    return run_as_command(importlib.import_module(f"spark.{arguments[0]}").main, arguments[1:])


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    sys.exit(submitted(sys.argv[1:]))
