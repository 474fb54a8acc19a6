"""When all sources are idle what is known is shown; when rows flow again, windows not shown yet are still right."""

from bisect import insort
from dataclasses import replace
from random import Random

import pytest

from skyband.engine.query_set import first_multiple_after
from skyband.model.duration import MIN_TIME_US
from skyband.model.group import Group
from skyband.model.query import Algorithm, Query, QueryState, Window
from skyband.model.stream import Aggregate, Attribute, Stream
from tests.engine.pure_pipeline import PurePipeline, as_dict, planned
from tests.engine.reference import Asked, Reference
from tests.lockstep import assert_equal
from tests.oracle import Row, Seen

PLACES = ((0, 0), (0, 1), (1, 0))
IDLE_AFTER_US = 1_000_000


def group_of(aggregate: Aggregate, shards: int, pane_us: int) -> Group:
    def stream(name: str, delay_us: int) -> Stream:
        attribute = Attribute(name=name, hi=100.0)
        return Stream(
            name=name, attributes=(attribute,), aggregate=aggregate, max_delay_us=delay_us, idle_after_us=IDLE_AFTER_US
        )

    streams = (stream("a", 0), stream("b", 2 * pane_us))
    retention_us = 6 * pane_us
    return Group(name="g", streams=streams, retention_us=retention_us, pane_us=pane_us, shards=shards, retention_rows=9)


class World:
    """A pipeline whose clock and sources are ours, and the rows that it has been sent."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.pipeline = PurePipeline(group, PLACES, check=True, catalog=True)
        self.reference = Reference(group)
        self.clock_us = 0
        self.sent = dict.fromkeys(PLACES, 0)
        self.watermarks = dict.fromkeys(PLACES, MIN_TIME_US)
        self.seen: list[Seen] = []
        self.counted: list[Seen] = []
        self.shown = 0

    @property
    def frontier(self) -> int:
        (frontier,) = {shard.sequencer.frontier_us for shard in self.pipeline.shards}
        return frontier

    @property
    def settled(self) -> int:
        (settled,) = {shard.sequencer.settled_us for shard in self.pipeline.shards}
        return settled

    def covered(self, slide: int) -> int:
        return max(
            self.frontier, first_multiple_after(slide, self.settled) if self.settled > MIN_TIME_US else MIN_TIME_US
        )

    def ask(self, query: Query) -> None:
        self.reference.asked[query.name] = Asked(query)
        self.pipeline.change(query)

    def send(self, place: tuple[int, int], row: Row) -> None:
        """Send one row; one that comes after the frontier passed it counts from the frontier on."""
        watermark = self.watermarks[place]
        release = max(row.event_time_us, watermark, self.frontier)
        self.watermarks[place] = max(watermark, row.event_time_us - self.group.streams[place[0]].max_delay_us)
        self.pipeline.add(place, [row], self.sent[place])
        self.sent[place] += 1
        if row.values[0] < 0.0:
            return  # out of range: it only moves time
        insort(self.seen, Seen(release, *place, self.sent[place] - 1, row.event_time_us, row.object_id, row.values))

    def carry(self, *, idle: bool) -> None:
        """Flush; `idle`: nothing comes for long."""
        self.pipeline.aligner.tick(self.clock_us, set())
        if idle:
            self.clock_us += IDLE_AFTER_US
            self.pipeline.aligner.tick(self.clock_us, set(PLACES))
        self.pipeline.flush(self.clock_us)
        for told in self.pipeline.activated:
            asked = self.reference.asked[told.uid]
            if not asked.turns:
                asked.turn(told.first_us, True, asked.query.k)
            assert asked.turns[0][0] == told.first_us
        self.pipeline.activated.clear()
        self.check()

    def check(self) -> None:
        got = [as_dict(result, False) for result in self.pipeline.results[self.shown :]]
        self.shown += len(got)
        is_settled = self.pipeline.shards[0].sequencer.holder() is None
        ready = [row for row in self.seen if is_settled or row.release < self.frontier]
        # While all is idle rows count at once, before others that may then come with the same release time.
        self.counted += [row for row in ready if row not in self.counted]
        truth = self.reference.advance(self.seen, self.covered, self.counted)
        assert_equal(truth, sorted(got, key=self.reference.place))


def queries_of(random: Random, group: Group, number: int, algorithm: Algorithm) -> Query:
    window = Window(random.choice((1, 3, 6)) * group.pane_us, random.choice((1, 1, 2, 3, 10)) * group.pane_us)
    query = Query(name=f"q{number}", k=random.choice((1, 3)), score=random.choice(("a + 2*b", "a")), window=window)
    return planned(group, query, algorithm)


@pytest.mark.parametrize("seed", range(24))
def test_windows_are_right_through_idle_times(seed: int) -> None:
    random = Random(seed)
    aggregate = random.choice((Aggregate.BEST, Aggregate.MAX, Aggregate.SUM))
    algorithm = random.choice((Algorithm.TWO_TIER, Algorithm.VIEW))
    world = World(group_of(aggregate, 1 + seed % 2, random.choice((1, 1_000))))
    pane, now = world.group.pane_us, random.choice((0, -50_000))
    for number in range(4):
        world.ask(queries_of(random, world.group, number, algorithm))
    if world.group.shards == 1:
        for size, slide in ((9, 1), (5, 3)):
            query = Query(name=f"c{size}", k=3, score="a + b", window=Window(size, slide, in_rows=True))
            world.ask(planned(world.group, query, algorithm))
    idle_times = 0
    for step in range(60):
        for _ in range(random.choice((0, 1, 3))):
            now += random.choice((0, 0, 1, pane, 3 * pane, 20 * pane if random.random() < 0.1 else 0))
            event = now - random.choice((0, 0, 1, 2 * pane, 5 * pane))
            place = random.choice(PLACES)
            world.send(place, Row(random.choice("abcdef"), event, (float(random.randint(0, 10)),)))
        if step % 9 == 8:
            world.ask(queries_of(random, world.group, 4 + step, algorithm))
        before = world.settled
        world.carry(idle=random.random() < 0.3)
        idle_times += world.settled > before
    assert idle_times > 3
    assert world.shown > 30


def events(world: World, *times: int) -> None:
    """Send a row of an object of its own at each time, through the first source."""
    for time in times:
        world.send((0, 0), Row(f"o{time}", time, (float(time),)))


@pytest.mark.parametrize("algorithm", [Algorithm.TWO_TIER, Algorithm.VIEW])
def test_a_window_past_the_frontier_takes_nothing_from_the_windows_before_it(algorithm: Algorithm) -> None:
    world = World(group_of(Aggregate.BEST, 1, 1))
    for name, slide in (("slow", 10), ("quick", 1)):
        world.ask(planned(world.group, Query(name=name, k=5, score="a", window=Window(6, slide)), algorithm))
    events(world, 3, 4, 7)
    world.carry(idle=True)
    assert (world.frontier, world.settled, world.pipeline.results[-1].window_end) == (8, 7, 10)
    for time in (8, 9, 12):
        events(world, time)
        world.send((0, 1), Row("x", time, (0.0,)))
        world.send((1, 0), Row("x", time + 2, (0.0,)))
        world.carry(idle=False)
    ids = {r.window_end: [row.object_id for row in r.rows] for r in world.pipeline.results if r.query == "quick"}
    assert ids[9] == ["o8", "o7", "o4", "o3", "x"]


def test_a_late_row_waits_for_its_time_even_while_all_is_idle() -> None:
    world = World(group_of(Aggregate.BEST, 1, 1))
    for name, slide in (("slow", 10), ("quick", 1)):
        world.ask(planned(world.group, Query(name=name, k=9, score="a", window=Window(6, slide))))
    events(world, 4, 7)
    world.carry(idle=True)
    # A row that is out of range moves the watermark to 9, where the late one is released.
    world.send((0, 0), Row("bad", 9, (-1.0,)))
    world.send((0, 0), Row("late", 5, (1.0,)))
    world.carry(idle=True)
    for time in (9, 10, 12):
        for place in PLACES:
            world.send(place, Row("x", time + 2 * place[0], (0.0,)))
        world.carry(idle=False)
    ids = {r.window_end: [row.object_id for row in r.rows] for r in world.pipeline.results if r.query == "quick"}
    assert (ids[9], ids[10]) == (["o7", "o4"], ["o7", "o4", "late", "x"])


@pytest.mark.parametrize("shards", [1, 2])
def test_a_shard_that_had_no_rows_does_not_show_a_window_that_counts_as_shown(shards: int) -> None:
    world = World(group_of(Aggregate.BEST, shards, 1))
    world.ask(planned(world.group, Query(name="slow", k=9, score="a", window=Window(6, 10))))
    world.ask(planned(world.group, Query(name="quick", k=9, score="a", window=Window(6, 1))))
    events(world, 7)
    world.carry(idle=True)
    for time in (8, 9, 11, 25):
        for name in "abcdefgh":  # they live in both shards
            world.send((0, 0), Row(name, time, (1.0,)))
        world.send((0, 1), Row("x", time, (0.0,)))
        world.send((1, 0), Row("x", time + 2, (0.0,)))
        world.carry(idle=False)
    assert [r.window_end for r in world.pipeline.results if r.query == "slow"] == [10, 20]


def test_a_query_added_while_all_is_idle_is_answered_at_once() -> None:
    world = World(group_of(Aggregate.BEST, 2, 1))
    events(world, 3, 7)
    world.carry(idle=True)
    world.ask(planned(world.group, Query(name="slow", k=9, score="a", window=Window(6, 10))))
    world.carry(idle=False)
    assert [(r.window_end, [row.object_id for row in r.rows]) for r in world.pipeline.results] == [(10, ["o7"])]


def test_a_query_added_after_rows_flow_again_begins_with_a_window_that_can_be_right() -> None:
    world = World(group_of(Aggregate.BEST, 2, 1))
    world.ask(planned(world.group, Query(name="quick", k=9, score="a", window=Window(6, 1))))
    events(world, 3, 7)
    world.carry(idle=True)
    events(world, 8)
    world.carry(idle=False)
    world.ask(planned(world.group, Query(name="slow", k=9, score="a", window=Window(6, 10))))
    events(world, 9)
    world.carry(idle=False)
    assert world.reference.asked["slow"].turns == [(20, True, 9)]
    for time in (15, 25):
        events(world, time)
        world.send((0, 1), Row("x", time, (0.0,)))
        world.send((1, 0), Row("x", time + 2, (0.0,)))
        world.carry(idle=False)
    assert [r.window_end for r in world.pipeline.results if r.query == "slow"] == [20]


def test_a_deleted_and_renewed_query_is_right_after_idle_times() -> None:
    world = World(group_of(Aggregate.BEST, 1, 1))
    query = planned(world.group, Query(name="slow", k=9, score="a", window=Window(6, 10)))
    world.ask(query)
    events(world, 7)
    world.carry(idle=True)
    world.pipeline.change(query, 2, QueryState.DELETED)
    again = replace(query, name="again")
    world.reference.asked["again"] = Asked(again)
    world.pipeline.change(again)
    world.reference.asked["slow"].turn(20, False, 9)
    world.pipeline.flush(world.clock_us)
    assert [(r.query, r.window_end) for r in world.pipeline.results] == [("slow", 10), ("again", 10)]
