"""Forgets compiled kernels whose sources changed, and copies the others for a process with a cache of its own.

numba compiles a kernel anew when its own file changed, but not when a kernel or a constant that it takes from another
file did: it would go on with the old code in silence. So each file with kernels is remembered with the contents of
everything it imports from the package, and what was compiled from it is deleted when these differ.
"""

import ast
import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("skyband", "services")
REMEMBERED = ROOT / ".kernels" / "sources.json"


def imported_files(path: Path) -> Iterator[Path]:
    """Yield the files of the package that `path` imports from, wherever in it the import stands."""
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError:
        return  # whoever imports it will hear of it, with a better message
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            if name.split(".")[0] in PACKAGES:
                place = ROOT.joinpath(*name.split("."))
                yield from (file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file())


def digest(path: Path, imports: dict[Path, list[Path]]) -> str:
    """Answer the hash of `path` and of all that it takes from the package, directly or through others."""
    seen, waiting = {path}, [path]
    while waiting:
        file = waiting.pop()
        if file not in imports:
            imports[file] = list(imported_files(file))
        new = set(imports[file]) - seen
        seen |= new
        waiting += new
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in sorted(seen))).hexdigest()


def forget_stale() -> list[str]:
    """Delete what was compiled from sources that are no more; answer the files whose kernels will be compiled again."""
    imports: dict[Path, list[Path]] = {}
    files = [
        path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")) if b"njit" in path.read_bytes()
    ]
    now = {path.relative_to(ROOT).as_posix(): digest(path, imports) for path in files}
    before = json.loads(REMEMBERED.read_text()) if REMEMBERED.is_file() else {}
    stale = [name for name in now if before.get(name) != now[name]]
    for name in stale:
        path = ROOT / name
        compiled = [*path.parent.glob(f"__pycache__/{path.stem}.*.nb[ic]")]
        compiled += REMEMBERED.parent.glob(f"*/*/{path.stem}.*.nb[ic]")
        for file in compiled:
            file.unlink(missing_ok=True)
    if now != before:
        REMEMBERED.parent.mkdir(exist_ok=True)
        REMEMBERED.write_text(json.dumps(now, indent=1))
    return stale


def copy_compiled(folder: Path) -> None:
    """Copy what was compiled beside the sources to `folder`, for a process that is to have NUMBA_CACHE_DIR there.

    What such a process has compiled since stays, unless it was compiled anew beside the sources.
    """
    for package in PACKAGES:
        for index in (ROOT / package).rglob("__pycache__/*.nbi"):
            sources = index.parent.parent
            # As numba names it.
            there = folder / f"{sources.name}_{hashlib.sha1(str(sources).encode()).hexdigest()}"
            copy = there / index.name
            if copy.is_file() and copy.stat().st_mtime >= index.stat().st_mtime:
                continue
            there.mkdir(parents=True, exist_ok=True)
            for data in [*index.parent.glob(f"{index.stem}.*.nbc"), index]:
                shutil.copy2(data, there)


if __name__ == "__main__":
    forget_stale()
