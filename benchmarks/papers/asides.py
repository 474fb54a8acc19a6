"""Beside the paper's experiments: its strict form against the sweeps, its sketches against the sample."""

from collections.abc import Callable
from dataclasses import replace

from benchmarks.papers.appearance import appearance_errors
from benchmarks.papers.measuring import Setting
from benchmarks.papers.report import Section
from benchmarks.papers.synthetic import Scale, cells, measured, progress

__all__ = ["EXPERIMENTS"]


def appearance(scale: Scale) -> list[Section]:
    seeds = 1 if scale.is_quick else 3
    rows = []
    for share in (0.1, 0.3, 0.5):
        for bitmaps in (16,) if scale.is_quick else (16, 32, 64):
            progress(f"appearance, alpha {share}, {bitmaps} bitmaps")
            found = appearance_errors(share, bitmaps, seeds)
            rows.append(
                [
                    f"{share}",
                    f"{found.chance:.3f}",
                    f"{bitmaps * 256 / 1024:.0f} KB",
                    f"{found.fm:.3f}",
                    f"{found.fm_in_window:.3f}",
                    f"{found.sample:.3f}",
                ]
            )
    return [
        Section(
            "Pr(X_y | X_I): bitmaps against the sample, at equal bytes",
            "Two streams, windows of 10 s with 1,000 rows a second, C = 20. Root mean square errors. Bitmaps: the "
            "paper's FM sketches with times (16 of them take 4 KB a stream), by likelihood; in window: against the "
            "objects of the window, as the paper defines it, else against what becomes of objects in the end.",
            ["α", "true chance", "a stream", "bitmaps", "bitmaps, in window", "sample"],
            rows,
            "The paper gives no errors. The sample errs by a third to two thirds of that: an intersection by "
            "inclusion and exclusion has the errors of three estimates, all of them in proportion to the union.",
        )
    ]


def strict(scale: Scale) -> list[Section]:
    names, one = ("EAA", "relaxed EAA"), replace(scale, seeds=1)
    found = {
        (share, slide): measured(f"the strict form, alpha {share}", one, Setting(500, slide), names, 5, alpha=share)
        for share in (0.1, 0.5)
        for slide in ((25,) if scale.is_quick else (1, 25))
    }
    return [
        Section(
            "The strict form and the sweeps",
            "Two streams, uniform values, W = 500, k = 10, C = 100. Retained after evaluations, and before them at "
            "most.",
            ["α", "slide", "EAA", "relaxed EAA", "EAA at most", "relaxed EAA at most"],
            [
                [f"{share}", f"{slide}", *cells(own, names, ()), *(f"{own[name].most:,}" for name in names)]
                for (share, slide), own in found.items()
            ],
            "The strict form looks at all pairs after each row, as the paper's does; a sweep comes with each "
            "evaluation. With a slide of one row they retain as much. With longer ones sweeps let the set grow "
            "between evaluations, and may retain a little less after them, and nothing else: what is forgotten later "
            "is known of an object that comes back.",
        )
    ]


EXPERIMENTS: dict[str, Callable[[Scale], list[Section]]] = {"strict": strict, "appearance": appearance}
