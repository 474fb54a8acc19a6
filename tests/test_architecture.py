"""What holds the tree together, and no other tool checks."""

import ast
import functools
import importlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
STAGES = ("align", "sketch", "engine", "fanout", "control")

# Folders of services/ that are no stage.
OTHER_SERVICES = {"runtime", "serve", "up", "produce", "doctor", "dead_letters"}
SERVICE_FILES = ("README.md", "__main__.py", "settings.py", "events.py")

# What the packages may import beyond the standard library and skyband itself; all others only numpy, and numba with
# what it writes code by.
COLUMNS = {"numpy", "numba", "llvmlite"}
MORE_IMPORTS = {
    "files": {"yaml", "pyarrow", "pandas", "polars"},
    "client": {"grpc", "google", "stamina"},
    "cli": {"typer", "rich", "click", "grpc", "google", "stamina"},
    "v1": {"grpc", "google"},
}

# Not another word for align: the topic between align and engine, and what flows through it.
OWN_WORDS = {"aligned"}

FORBIDDEN_NAMES = {"utils", "util", "common", "helpers", "helper", "misc", "core", "base", "manager"}
GENERATED = ("_pb2.py", "_pb2_grpc.py")
MOST_LINES = 400
MOST_FUNCTION_LINES = 80

# path::function → why it is one piece.
LONG_FUNCTIONS: dict[str, str] = {}

# Put together here, so that this file does not find itself.
UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME)\b")
MACHINE_PATH = re.compile(r"(?<![\w./~$}*-])/(?:work|root|home|Users)/")
REGISTRY = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("crates", "io"),
            ("registry", "npmjs", "org"),
            ("repo", "maven", "apache", "org"),
            ("repo1", "maven", "org"),
            ("proxy", "golang", "org"),
            ("deb", "debian", "org"),
        )
    )
)


@functools.cache
def project_files() -> tuple[str, ...]:
    """The files of the project, from its root: tracked and new ones where git is there, all but caches elsewhere."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        answer = ""
    names = answer.split("\0") if answer else walk()
    return tuple(sorted(name for name in names if name and (ROOT / name).is_file()))


def walk() -> Iterator[str]:
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in {".git", ".venv", "__pycache__"} and "_cache" not in name]
        for name in names:
            yield (Path(folder) / name).relative_to(ROOT).as_posix()


def sources() -> list[str]:
    return [name for name in project_files() if name.endswith(".py") and not name.endswith(GENERATED)]


def texts() -> Iterator[tuple[str, str]]:
    for name in project_files():
        content = (ROOT / name).read_bytes()
        if b"\0" not in content:
            yield name, content.decode(errors="replace")


def parse(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text(encoding="utf-8"), filename=name)


def lines_matching(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {match.group()}"
        for name, text in texts()
        if pattern.search(text)
        for number, line in enumerate(text.splitlines(), start=1)
        if (match := pattern.search(line))
    ]


def folders_in(parent: str) -> set[str]:
    depth = len(Path(parent).parts)
    return {
        Path(name).parts[depth]
        for name in project_files()
        if Path(name).is_relative_to(parent) and len(Path(name).parts) > depth + 1
    }


def other_word_for(word: str) -> str | None:
    """Answer the stage that `word` is another word for: aligner, alignment, fan_out; None for the stage's own word."""
    word = word.lower()
    if re.split(r"[^a-z]", word)[0] in OWN_WORDS:
        return None
    squashed = re.sub(r"[^a-z]", "", word)
    return next((s for s in STAGES if squashed.startswith(s) and not re.match(rf"{s}(?![a-z])", word)), None)


# --- one word per stage


@pytest.mark.parametrize("parent", ["skyband", "services", "tests"])
def test_a_folder_of_a_stage_bears_the_word_of_the_stage(parent: str) -> None:
    wrong = {
        f"{parent}/{name}": f"call it {stage}"
        for name in folders_in(parent)
        for stage in STAGES
        if re.sub(r"[^a-z]", "", name.lower()).startswith(stage) and name != stage
    }
    assert not wrong


@pytest.mark.parametrize(
    ("word", "stage"),
    [
        ("aligner", "align"),
        ("fan-out", "fanout"),
        ("Controller", "control"),
        ("engine", None),
        ("ENGINE_rows", None),
        ("aligned_batch", None),
    ],
)
def test_another_word_for_a_stage_is_recognised(word: str, stage: str | None) -> None:
    assert other_word_for(word) == stage


def test_a_service_a_manifest_and_a_benchmark_of_a_stage_bear_its_word() -> None:
    wrong = {
        name: f"call it {stage}"
        for name in project_files()
        if Path(name).parts[0] in {"services", "k8s", "benchmarks"}
        for part in Path(name).parts[1:]
        if (stage := other_word_for(part.removeprefix("bench_")))
    }
    assert not wrong


def test_environment_and_metrics_of_a_stage_begin_with_its_word() -> None:
    prefix = re.compile(r"\bskyband_(\w+)", re.IGNORECASE)
    wrong = {
        f"{name}: {match.group()}"
        for name, text in texts()
        if name != "tests/test_architecture.py"
        for match in prefix.finditer(text)
        if other_word_for(match.group(1))
    }
    assert not wrong


def test_services_are_the_stages_and_what_they_stand_on() -> None:
    assert folders_in("services") <= {*STAGES, *OTHER_SERVICES}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_has_its_loop_in_stage_py_and_its_tests_beside_it(stage: str) -> None:
    files = set(project_files())
    if f"skyband/{stage}/__init__.py" not in files:
        pytest.skip(f"skyband/{stage} is not there yet")
    missing = {f"skyband/{stage}/stage.py", f"tests/{stage}/test_stage.py"} - files
    assert not missing


@pytest.mark.parametrize("stage", STAGES)
def test_a_service_wraps_the_stage_of_its_name_and_has_the_files_of_a_service(stage: str) -> None:
    if stage not in folders_in("services"):
        pytest.skip(f"services/{stage} is not there yet")
    wanted = {f"skyband/{stage}/stage.py", *(f"services/{stage}/{name}" for name in SERVICE_FILES)}
    assert not wanted - set(project_files())


# --- imports and exports


def packages() -> list[str]:
    return [name for name in sources() if name.startswith("skyband/") and name.endswith("/__init__.py")]


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, those in `if` and `try` too."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from statements(node.body)
            yield from statements(node.orelse)


def assigned(node: ast.stmt) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def exported(module: ast.Module) -> list[str] | None:
    for node in module.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and "__all__" in assigned(node):
            return list(ast.literal_eval(node.value))
    return None


def public_names(module: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in statements(module.body):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "skyband":
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        names |= assigned(node)
    return {name for name in names if not name.startswith("_")}


def export_order(name: str) -> tuple[int, str]:
    """Sort as ruff's RUF022 does: constants, classes, functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


@pytest.mark.parametrize("name", packages())
def test_a_package_lists_in_order_all_that_it_offers_and_nothing_else(name: str) -> None:
    module = parse(name)
    listed = exported(module)
    assert listed is not None, f"{name} has no __all__"
    assert listed == sorted(set(listed), key=export_order)
    assert not public_names(module) - set(listed), "public, and not listed"
    imported = importlib.import_module(name.removesuffix("/__init__.py").replace("/", "."))
    assert not [entry for entry in listed if not hasattr(imported, entry)], "listed, and not there"


def imported_modules(name: str) -> set[str]:
    modules: set[str] = set()
    for node in ast.walk(parse(name)):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            modules.update(f"{node.module}.{alias.name}" for alias in node.names)
    return modules


def imported_roots(name: str) -> set[str]:
    return {module.split(".")[0] for module in imported_modules(name)}


def test_the_package_imports_nothing_that_its_parts_may_not() -> None:
    known = set(sys.stdlib_module_names) | {"skyband"} | COLUMNS
    wrong = {
        name: foreign
        for name in sources()
        if name.startswith("skyband/")
        if (foreign := imported_roots(name) - known - MORE_IMPORTS.get(Path(name).parts[1], set()))
    }
    assert not wrong


def test_every_top_package_is_under_the_import_linter() -> None:
    linted = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
    there = {Path(name).parts[0] for name in sources() if Path(name).parts[0] in {"skyband", "services", "spark"}}
    assert set(linted) == there, "name it in root_packages of pyproject.toml, and write the contract of its imports"


def test_a_spark_job_knows_no_service_but_what_they_stand_on() -> None:
    wrong = {
        name: module
        for name in sources()
        if Path(name).parts[0] == "spark"
        for module in imported_modules(name)
        if module.split(".")[0] == "services" and not module.startswith("services.runtime.")
    }
    assert not wrong


def test_the_declared_dependencies_are_the_pinned_ones() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    lines = (ROOT / "requirements/runtime.in").read_text().splitlines()
    assert declared == [line for line in lines if line and not line.startswith("#")]


# --- names, sizes, words


def test_no_file_or_folder_has_a_name_that_says_nothing() -> None:
    wrong = [
        name
        for name in project_files()
        if FORBIDDEN_NAMES & {part.split(".")[0].removeprefix("test_").strip("_") for part in Path(name).parts}
    ]
    assert not wrong


def test_no_source_file_is_longer_than_a_reader_holds() -> None:
    lengths = {name: len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in sources()}
    assert not {name: length for name, length in lengths.items() if length > MOST_LINES}


def long_functions() -> dict[str, int]:
    return {
        f"{name}::{node.name}": length
        for name in sources()
        for node in ast.walk(parse(name))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (length := (node.end_lineno or node.lineno) - node.lineno + 1) > MOST_FUNCTION_LINES
    }


def test_a_long_function_is_listed_with_its_reason() -> None:
    assert long_functions().keys() == LONG_FUNCTIONS.keys()


def test_nothing_is_left_to_do_in_a_comment() -> None:
    assert not lines_matching(UNFINISHED)


def test_no_file_names_a_path_of_one_machine() -> None:
    assert not lines_matching(MACHINE_PATH)


def test_no_file_names_a_package_registry() -> None:
    assert not lines_matching(REGISTRY)
