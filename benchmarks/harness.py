"""Runs benchmark cases, prints min / median / max with the machine, keeps results, holds them against bounds."""

import json
import os
import platform
import statistics
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import numba
import numpy

HERE = Path(__file__).parent
RESULTS = HERE / "results"
Case = Callable[[], Mapping[str, float]]


def machine() -> dict[str, str | int]:
    """Return what the figures were measured on."""
    model = "unknown processor"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return {
        "processor": model,
        "cores": os.cpu_count() or 0,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "numba": numba.__version__,
    }


def run(cases: Mapping[str, Case], repeats: int) -> dict[str, dict[str, list[float]]]:
    """Run each case once to warm up and `repeats` times to measure; return every figure of every run."""
    figures: dict[str, dict[str, list[float]]] = {}
    for name, case in cases.items():
        print(f"{name} … ", end="", flush=True)
        case()
        runs = [case() for _ in range(repeats)]
        figures[name] = {key: [float(run[key]) for run in runs] for key in runs[0]}
        print(_line(figures[name]), flush=True)
    return figures


def _line(figures: Mapping[str, list[float]]) -> str:
    rates = [key for key in figures if key.endswith("per_s")] or list(figures)[:1]
    rest = [key for key in figures if key not in rates and key not in ("rows", "seconds")]
    parts = [
        f"{key} {min(figures[key]):,.0f} / {statistics.median(figures[key]):,.0f} / {max(figures[key]):,.0f}"
        for key in rates
    ]
    return "   ".join(parts + [f"{key} {statistics.median(figures[key]):,.3g}" for key in rest])


def show(name: str, figures: Mapping[str, float]) -> None:
    """Print the figures of one case in a line, as soon as they are there."""
    print(name, "  ".join(f"{key} {value:,.3g}" for key, value in figures.items()), flush=True)


def broken_bounds(figures: Mapping[str, Mapping[str, float | list[float]]]) -> list[str]:
    """Return a sentence for each bound of bounds.json that a figure, or the median of several, breaks."""
    broken = []
    for name, bounds in json.loads((HERE / "bounds.json").read_text()).items():
        for key, bound in bounds.items():
            if name not in figures:
                continue
            found = figures[name][key]
            value = statistics.median(found) if isinstance(found, list) else found
            if value < bound.get("least", value) or value > bound.get("most", value):
                broken.append(f"{name}: {key} is {value:,.3g}, the bound is {bound}")
    return broken


def save(figures: Mapping[str, object], label: str) -> Path:
    """Write figures with the machine to results/; return the file."""
    RESULTS.mkdir(exist_ok=True)
    now = datetime.now(UTC)
    path = RESULTS / f"{now:%Y-%m-%d}-{label}.json"
    document = {"measured": f"{now:%Y-%m-%d %H:%M} UTC", "machine": machine(), "figures": figures}
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path
