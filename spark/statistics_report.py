"""The report of statistics: one HTML file that needs nothing else, neither scripts nor other files."""

from collections.abc import Iterable, Sequence
from html import escape

from skyband.cli.figures import as_time, count
from skyband.model.duration import format_duration
from skyband.model.statistics import LAG_QUANTILES, VALUE_QUANTILES
from spark import statistics_plots as plots
from spark.statistics_finding import Finding

__all__ = ["report"]

_CSS = """
:root { color: #1b2733; background: #fff; font: 15px/1.5 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
body { max-width: 60rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; margin: 0 0 .2rem; } h2 { font-size: 1.15rem; margin: 2.6rem 0 .2rem; }
p { margin: .3rem 0 .9rem; max-width: 48rem; } .what { color: #45576a; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.4rem; margin: 1.2rem 0;
  padding: .9rem 1.1rem; background: #f3f7fb; border-radius: 6px; }
dt { color: #45576a; } dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; font-size: .92rem; }
th { text-align: right; font-weight: 600; color: #45576a; border-bottom: 2px solid #a9c8e4; padding: .25rem .8rem; }
td { text-align: right; padding: .25rem .8rem; border-bottom: 1px solid #dde4ea; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
figure { margin: .8rem 0; overflow-x: auto; } svg { max-width: 100%; height: auto; }
footer { margin-top: 3rem; color: #45576a; font-size: .85rem; }
@media print { body { margin: 0; } h2 { break-after: avoid; } figure, table { break-inside: avoid; } }
"""


def report(found: Finding, made_us: int) -> str:
    """Return the page, made at `made_us`. Cost: 2 s for the pictures."""
    told = found.statistics
    title = f"Statistics of group {told.group}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        _facts(found, made_us),
        _objects(found),
        _appearances(found) if len(told.streams) > 1 else "",
        _subsets(found) if found.subsets else "",
        _lags(found) if len(told.streams) > 1 else "",
        _values(found),
        _repetition(found),
        f"<footer>Made by skyband at {escape(as_time(made_us))}. All but rows and observations is estimated from "
        "sketches; errors are standard errors: two of three times the truth lies within one.</footer>",
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_CSS}</style></head>\n<body>\n'
        + "\n".join(filter(None, parts))
        + "\n</body></html>\n"
    )


def _facts(found: Finding, made_us: int) -> str:
    told, run = found.statistics, found.run
    inner = told.statistics
    window = (
        f"{as_time(inner.at_us - inner.window_us)} up to {as_time(inner.at_us)} ({format_duration(inner.window_us)})"
    )
    span = "the newest window, as long as the group's retention"
    if found.range is not None:
        length = format_duration(found.range.to_us - found.range.from_us)
        span = f"{as_time(found.range.from_us)} up to {as_time(found.range.to_us)} ({length})"
    share = "all objects" if inner.rate >= 1.0 else f"1 object in {round(1 / inner.rate):,}"
    rate = f", {run.rows / run.seconds:,.0f} rows/s" if run.seconds > 0 else ""
    facts = {
        "Group": f"{told.group}, generation {told.generation}, {count(len(told.streams), 'stream')}",
        "Range": span,
        "Window": f"{window}; what is known begins at {as_time(told.from_us)}",
        "Read from": run.where,
        "Rows": f"{count(run.rows, 'row')}, {count(run.repeats, 'repeat')} left out",
        "Took": f"{run.seconds:.1f} s{rate}",
        "Sample": f"{count(inner.sampled_objects, 'object')} ({share})",
        "Source": told.source,
    }
    if told.silent_shards:
        facts["Without shards"] = ", ".join(map(str, told.silent_shards))
    return f"<dl>{''.join(f'<dt>{escape(k)}</dt><dd>{escape(v)}</dd>' for k, v in facts.items())}</dl>"


def _objects(found: Finding) -> str:
    told = found.statistics
    rows = [
        (name, f"{one.cardinality.value:,.0f}", f"{one.cardinality.error:,.0f}", f"{observations:,}")
        for name, one, observations in zip(told.streams, told.statistics.streams, told.observations, strict=True)
    ]
    return _section(
        "Objects",
        "How many distinct objects each stream has had in the window.",
        plots.cardinalities(told),
        _table(("stream", "objects", "± error", "observations"), rows),
    )


def _appearances(found: Finding) -> str:
    told = found.statistics
    unknown = sum(its.appearance is None for its in told.statistics.pairs)
    note = (
        f" Unknown, marked ?: {count(unknown, 'pair')}, of which fewer than 30 sampled objects tell." if unknown else ""
    )
    worst = max((its.appearance.error for its in told.statistics.pairs if its.appearance is not None), default=0.0)
    return _section(
        "Co-appearance",
        "Of the objects on a row's stream, the share that comes on a column's stream too. Standard errors are at most "
        f"{worst:.3f}.{note}",
        plots.appearances(told),
    )


def _subsets(found: Finding) -> str:
    labels = [its.label(found.statistics.streams) for its, _ in found.subsets]
    told = [its for _, its in found.subsets]
    rows = [
        (label, "?", "", "fewer than 30")
        if its is None
        else (label, f"{its.probability:.3f}", f"{its.error:.3f}", f"{its.objects:,}")
        for label, its in zip(labels, told, strict=True)
    ]
    return _section(
        "Chosen subsets",
        "Of the objects that came on all streams before the arrow, the share that comes on the one behind it.",
        plots.subsets(labels, told) if any(told) else "",
        _table(("given → stream", "share", "± error", "sampled objects"), rows),
    )


def _lags(found: Finding) -> str:
    known = plots.known_lags(found.statistics)
    if not known:
        return _section("Lags", "Unknown: of no two streams do 30 sampled objects tell.")
    left = len(known) - plots.MOST_ROWS
    note = f" {count(left, 'pair')} less far apart left out." if left > 0 else ""
    rows = [(label, *map(_lag, its)) for label, its in known[: plots.MOST_ROWS]]
    return _section(
        "Lags",
        "How much later an object comes on the second stream than on the first; negative where it comes earlier."
        + note,
        plots.lags(found.statistics),
        _table(("pair", *(f"{level:.0%} (s)" for level in LAG_QUANTILES)), rows),
    )


def _values(found: Finding) -> str:
    told = found.statistics
    rows = [
        (attribute, *(f"{value:.6g}" for value in quantiles))
        for names, one in zip(told.attributes, told.statistics.streams, strict=True)
        for attribute, quantiles in zip(names, one.value_quantiles, strict=False)
    ]
    if not rows:
        return _section("Values", "Unknown: of no stream are 30 objects sampled.")
    left = len(rows) - plots.MOST_ROWS
    note = f" Pictures of {count(left, 'attribute')} left out." if left > 0 else ""
    return _section(
        "Values",
        "How the latest values of objects are spread, in each attribute's own unit." + note,
        plots.values(told),
        _table(("attribute", *(f"{level:.0%}" for level in VALUE_QUANTILES)), rows),
    )


def _repetition(found: Finding) -> str:
    told = found.statistics
    rows = [
        (
            name,
            f"{observations / one.cardinality.value:,.1f}" if one.cardinality.value >= 1 else "–",
            f"{one.repetition_bound:,.0f}",
            f"{one.second_moment.value:,.0f}",
            f"{one.second_moment.error:,.0f}",
        )
        for name, observations, one in zip(told.streams, told.observations, told.statistics.streams, strict=True)
    ]
    return _section(
        "Repetition",
        "How often an object comes again on one stream. The bound holds to two standard errors, and is far off where "
        "there are many objects.",
        plots.repetition(told) if any(told.observations) else "",
        _table(("stream", "observations an object", "no object more than", "sum of squared counts", "± error"), rows),
    )


def _section(title: str, what: str, picture: str = "", table: str = "") -> str:
    figure = f'<figure role="img" aria-label="{escape(title)}">{picture}</figure>' if picture else ""
    return f'<section><h2>{escape(title)}</h2><p class="what">{escape(what)}</p>{figure}{table}</section>'


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _lag(lag_us: int) -> str:
    return f"{lag_us / 1e6:,.3f}".replace("-", "−")
