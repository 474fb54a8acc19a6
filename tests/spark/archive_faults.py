"""What kills an archive: tasks that die once, and a driver that stops right before a commit."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pyarrow as pa

from spark import archive
from spark.archive_commits import CommitLog
from spark.archive_tasks import Plan, archive_records


def dies_once(mark: str, plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Archive as tasks do; the first one to get so far dies with its files written and its report not sent."""
    reports = list(archive_records(plan, batches))
    try:
        Path(mark).touch(exist_ok=False)
    except FileExistsError:
        yield from reports
    else:
        os._exit(1)


def stop_before_commit(mark: Path, arguments: list[str]) -> None:
    """Run the job until its first commit is to be written; then make `mark` and wait to be killed."""

    def append(*_: object) -> None:
        mark.touch()
        sys.stdin.read()

    with mock.patch.object(CommitLog, "append", append):
        archive.main(arguments)


if __name__ == "__main__":
    stop_before_commit(Path(sys.argv[1]), sys.argv[2:])
