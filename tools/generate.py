"""Generates skyband/v1 from proto/, with types: `python -m tools.generate`; with --check, says whether it is fresh.

What is generated is committed: who installs the package needs no compiler.
"""

import filecmp
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
PACKAGE = "skyband/v1"
PATTERNS = ("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*_pb2_grpc.pyi")
PLUGINS = ("mypy", "mypy_grpc")


def generate(into: Path) -> None:
    """Write the modules below the folder `into`; raise RuntimeError if the compiler finds something wrong."""
    sources = sorted(path.relative_to(PROTO).as_posix() for path in PROTO.glob(f"{PACKAGE}/*.proto"))
    scripts = Path(sys.executable).parent
    outputs = [f"--{kind}_out={into}" for kind in ("python", "grpc_python")]
    outputs += [f"--{plugin}_out=quiet:{into}" for plugin in PLUGINS]
    plugins = [f"--plugin=protoc-gen-{plugin}={scripts / f'protoc-gen-{plugin}'}" for plugin in PLUGINS]
    known = Path(grpc_tools.__file__).parent / "_proto"
    if protoc.main(["protoc", f"-I{PROTO}", f"-I{known}", *plugins, *outputs, *sources]):
        raise RuntimeError("protoc failed; see what it said above")


def generated(below: Path) -> set[str]:
    """Return the generated files below a folder, by their paths from there."""
    return {path.relative_to(below).as_posix() for pattern in PATTERNS for path in below.glob(f"{PACKAGE}/{pattern}")}


def stale() -> Iterator[str]:
    """Yield what is not as it would be generated now."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder)
        generate(fresh)
        names = generated(fresh)
        for name in sorted(names | generated(ROOT)):
            committed = ROOT / name
            if name not in names or not committed.is_file() or not filecmp.cmp(fresh / name, committed, shallow=False):
                yield name


def main(arguments: list[str]) -> int:
    if "--check" in arguments:
        found = list(stale())
        for name in found:
            print(f"{name} is not as proto/ has it; run: python -m tools.generate", file=sys.stderr)
        return bool(found)
    with tempfile.TemporaryDirectory() as folder:
        # Nothing is touched before the compiler has found nothing wrong.
        generate(Path(folder))
        names = generated(Path(folder))
        for name in generated(ROOT) - names:
            (ROOT / name).unlink()
        for name in names:
            shutil.copyfile(Path(folder, name), ROOT / name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
