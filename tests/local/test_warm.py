"""Warming: what it says, and that nothing is left to compile behind it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skyband.local import warm

ROOT = Path(__file__).resolve().parents[2]
# Kernels that no replay calls: for producers, for scores of whole columns, and for checks of a table.
NOT_IN_REPLAY = {"hashing._hash_ids", "hashing._murmur2", "object_table.find_object", "score_kernel.evaluate_rows"}

NAMES_OF_KERNELS = """\
import importlib, pkgutil, sys
import skyband
from numba.core.dispatcher import Dispatcher
for found in pkgutil.walk_packages(skyband.__path__, "skyband."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
for name, module in sorted(sys.modules.items()):
    if name.startswith("skyband."):
        for value in vars(module).values():
            if isinstance(value, Dispatcher) and value.py_func.__module__ == name:
                print(name.rsplit(".", 1)[1] + "." + value.py_func.__qualname__)
"""

REPLAYS = """\
import sys
from pathlib import Path
from random import Random
from numba.core import event
import skyband
from tests.local.replays import in_one_partition, mixed_files, promising, workload
from tests.local.test_replay_lockstep import options_for
with event.install_recorder("numba:compile") as compiled:
    for seed in range(40):
        definitions, rows = workload(seed, 150)
        if seed % 2:
            definitions, rows = promising(definitions, rows, definitions.group.retention_us)
        (given,) = mixed_files(definitions.group, in_one_partition(rows), seed)
        for _ in skyband.replay(definitions, given, **Random(seed).choice(options_for(definitions))):
            pass
print(*sorted({str(happened.data["dispatcher"].py_func) for _, happened in compiled.buffer}), sep="\\n")
"""


def test_each_step_is_a_line_with_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    steps = [("one thing", lambda: done.append("one")), ("another thing", lambda: done.append("two"))]
    monkeypatch.setattr(warm, "steps", lambda: iter(steps))
    written: list[str] = []
    warm.warm(written.append)
    assert done == ["one", "two"]
    assert [line.split("  ")[0] for line in written] == ["one thing", "another thing", "warm after"]
    assert all(line.endswith(" s\n") for line in written)


def test_every_step_runs() -> None:
    names = []
    for name, run in warm.steps():
        run()
        names.append(name)
    assert len(names) == len(set(names)) == 10


@pytest.mark.slow
def test_nothing_is_left_to_compile(tmp_path: Path) -> None:
    def python(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        return subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )

    def compiled() -> set[str]:
        return {path.name for path in tmp_path.rglob("*.nbc")}

    warmed = python("-m", "skyband.local.warm")
    assert warmed.stdout == ""
    assert warmed.stderr.count("\n") == 11
    known = compiled()
    kernels = set(python("-c", NAMES_OF_KERNELS).stdout.split())
    # What is inlined into others may be compiled with them, or on its own: numba decides.
    missing = kernels - NOT_IN_REPLAY - {name.split("-")[0] for name in known}
    assert missing == set()
    assert python("-c", REPLAYS).stdout.split("\n") == ["", ""]
    assert compiled() == known
