"""The report: one page with every figure, which asks for nothing else."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from skyband.model.published_statistics import PublishedStatistics
from skyband.model.statistics import Appearance, Estimate, GroupStatistics, PairStatistics, StreamStatistics
from spark.statistics_finding import Finding, Run, print_finding
from spark.statistics_plan import Range
from spark.statistics_report import report
from spark.statistics_subsets import Subset

S = 1_000_000
BEGIN_US = 1_784_376_000 * S
SECTIONS = ["Objects", "Co-appearance", "Chosen subsets", "Lags", "Values", "Repetition"]


def finding(streams: int = 3, *, known: bool = True) -> Finding:
    """Return statistics of some streams; the last pairs are unknown."""
    names = tuple(f"stream_{number}" for number in range(streams))
    pairs = [
        PairStatistics(
            i,
            j,
            Appearance((i + j + 1) / (2 * streams), 0.02, 400 + i) if known and i + j < 2 * streams - 3 else None,
            (-S * i, (j - i) * S, 3 * S * (j + 1)) if known else (),
        )
        for i in range(streams)
        for j in range(streams)
        if i != j
    ]
    quantiles = (-3.5, 0.0, 1.25, 4.0, 1e6) if known else ()
    told = tuple(
        StreamStatistics(Estimate(1_000.0 * i, 85.0), Estimate(9e6, 1e5), 3_010.5, (quantiles,) if known else ())
        for i in range(streams)
    )
    inner = GroupStatistics(BEGIN_US + 60 * S, 60 * S, 0.25, 1_234, told, tuple(pairs))
    statistics = PublishedStatistics(
        group="factory",
        generation=2,
        streams=names,
        attributes=tuple((f"value<{name}>",) for name in names),
        observations=tuple(5_000 * i for i in range(streams)),
        from_us=BEGIN_US,
        published_us=BEGIN_US,
        source="spark:july",
        silent_shards=(3,),
        statistics=inner,
    )
    subsets = ((Subset((0, 1), 2), Appearance(0.625, 0.01, 321) if known else None), (Subset((2,), 0), None))
    run = Run(where="the archive /data/a&b", rows=12_345, repeats=67, seconds=2.5)
    span = Range(BEGIN_US, BEGIN_US + 60 * S)
    return Finding(statistics=statistics, subsets=subsets, range=span, run=run)


class Page(HTMLParser):
    """Checks that elements nest, and gathers headings, ids and what is asked for elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "action")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def page() -> str:
    return report(finding(), BEGIN_US)


def test_the_page_has_every_section_with_a_picture(page: str) -> None:
    assert re.findall(r"<h2>(.*?)</h2>", page) == SECTIONS
    sections = page.split("<section>")[1:]
    assert [section.count("<svg") for section in sections] == [1] * len(SECTIONS)


def test_the_page_says_of_what_it_is(page: str) -> None:
    words = "".join(Page(page).words)
    for said in (
        "Statistics of group factory",
        "factory, generation 2, 3 streams",
        "(1m)",
        "the archive /data/a&b",
        "12,345 rows, 67 repeats left out",
        "2.5 s, 4,938 rows/s",
        "1,234 objects (1 object in 4)",
        "spark:july",
        "Without shards",
        "stream_0,stream_1→stream_2",
        "0.625",
        "value<stream_1>",
        "distinct objects (bar and point), ± one standard error",
        "share of objects, 0 to 1",
        "how much later on the second stream, seconds",
        "in the attribute's own unit; box: the middle half",
        "observations of one object",
    ):
        assert said in words, said


def test_the_page_asks_for_nothing_and_runs_nothing(page: str) -> None:
    found = Page(page)
    assert all(link.startswith("#") for link in found.links)
    assert {link[1:] for link in found.links} <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    clips = re.findall(r"url\(#?([^)]*)\)", page)
    assert set(clips) <= set(found.ids)
    assert "://" not in page
    assert "<script" not in page
    assert "@import" not in page
    assert not re.search(r"\son\w+=", page)


def test_the_pictures_are_whole_and_fit_the_page(page: str) -> None:
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(pictures) == len(SECTIONS)
    for picture in pictures:
        _, _, width, height = map(float, (ElementTree.fromstring(picture).get("viewBox") or "").split())
        assert 300 < width < 700
        assert 60 < height < 400
        # Text is text, for those who search and those who listen.
        assert "<text" in picture
    assert len(page) < 200_000


def test_the_same_statistics_make_the_same_page(page: str) -> None:
    assert report(finding(), BEGIN_US) == page


def test_what_is_unknown_is_said_and_has_no_picture() -> None:
    page = report(finding(known=False), BEGIN_US)
    assert re.findall(r"<h2>(.*?)</h2>", page) == SECTIONS
    assert "Unknown: of no two streams do 30 sampled objects tell." in page
    assert "Unknown: of no stream are 30 objects sampled." in page
    assert page.count("<svg") == 3


def test_one_stream_alone_has_no_pairs() -> None:
    one = finding(1)
    page = report(replace(one, subsets=()), BEGIN_US)
    assert re.findall(r"<h2>(.*?)</h2>", page) == ["Objects", "Values", "Repetition"]


def test_many_streams_leave_out_pictures_and_say_so() -> None:
    many = finding(20)
    page = report(many, BEGIN_US)
    pairs = sum(pair.given < pair.stream for pair in many.statistics.statistics.pairs)
    assert f"{pairs - 40} pairs less far apart left out." in page
    Page(page)


def test_the_tables_tell_of_subsets_range_and_rows(capsys: pytest.CaptureFixture[str]) -> None:
    print_finding(finding())
    out = capsys.readouterr().out
    assert "stream_0,stream_1→stream_2  0.625" in out
    assert "12,345 rows of the archive /data/a&b in 2.5 s, 67 repeats left out" in out
    assert "rows with event times from " in out
