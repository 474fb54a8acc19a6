"""Aligners of one group that fail, die and wake up again: nobody who reads what they write can tell."""

import random

import pytest

from skyband.align.stage import AlignStage
from tests.align.members import KEYS, SHARDS, Shop, filled, letters, position, settle, sources
from tests.align.reference import Row

S = 1_000_000


def test_a_refused_commit_is_counted_and_made_up_for_by_the_next() -> None:
    shop = Shop()
    shop.put((0, 0), Row(0, 1))
    stage = shop.join()
    shop.log.refusing = True
    settle([stage])
    its = stage.statistics()
    assert (its.refused_commits, shop.log.stored) == (2, {})
    assert "shared out anew" in its.refusal
    shop.log.refusing = False
    shop.put((1, 0), Row(0, 1))
    settle([stage])
    assert shop.log.committed[position((0, 0))] == 1
    assert shop.log.committed[position((1, 0))] == 1
    assert shop.read() == shop.alone().read()


def test_a_refused_commit_is_tried_again_after_a_while_even_if_nothing_comes() -> None:
    shop = Shop()
    shop.put((0, 0), Row(0, 1))
    stage = shop.join(tick_interval_us=10)
    shop.log.refusing = True
    settle([stage])
    shop.log.refusing = False
    settle([stage])
    assert shop.log.stored == {}
    shop.clock.advance(10)
    settle([stage])
    assert shop.log.committed[position((0, 0))] == 1


def test_one_that_is_stopped_in_the_middle_of_a_flush_and_wakes_up_after_it_was_taken_over_does_no_harm() -> None:
    shop = filled(random.Random(4), 40)
    zombie = shop.join(poll_records=30)
    shop.log.room = 7
    while zombie.step():
        pass
    stuck = zombie.statistics().undelivered
    before = dict(shop.log.stored)
    shop.die(zombie)
    shop.log.room = float("inf")
    successor = shop.join()
    settle([successor])
    taken_over = dict(shop.log.stored)
    written = len(shop.batches(0)) + len(shop.batches(1))
    zombie.step()
    assert stuck > 0
    assert before != taken_over
    assert len(shop.batches(0)) + len(shop.batches(1)) > written
    assert zombie.statistics().refused_commits == 1
    assert shop.log.stored == taken_over
    settle([zombie, successor])
    assert sources(zombie, successor) == KEYS
    assert shop.read() == shop.alone().read()


def test_what_was_lost_is_dropped_and_read_again_by_who_gets_it() -> None:
    shop = Shop()
    stage = shop.join(flush_interval_us=S, batch_rows=100)
    stage.step()
    shop.put((0, 0), Row(0, 5), Row(0, 6, b""))
    stage.step()
    shop.die(stage)
    shop.log.members.clear()
    assert stage.statistics().pending_rows == 1
    stage.step()
    settle([stage])
    shop.clock.advance(S)
    settle([stage])
    assert [letter.offset for letter in letters(shop)] == [1]
    assert sum(batch.rows for shard in range(SHARDS) for batch in shop.batches(shard)) == 1
    assert stage.statistics().counts[0].accepted == 2


def test_one_that_gives_partitions_up_while_the_log_is_full_commits_nothing_and_writes_on_later() -> None:
    shop = Shop()
    first = shop.join(flush_interval_us=S, batch_rows=100)
    settle([first])
    shop.put((0, 0), *(Row(0, time_us, b"%d" % time_us) for time_us in range(9)))
    shop.put((0, 1), Row(0, 3))
    first.step()
    shop.log.room = 1
    before = dict(shop.log.stored)
    second = shop.join()
    first.step()
    assert shop.log.stored == before
    assert first.statistics().undelivered == SHARDS - 1
    shop.log.room = float("inf")
    settle([second, first])
    assert shop.read() == shop.alone().read()


def test_one_that_is_abandoned_leaves_without_a_word() -> None:
    shop = Shop()
    stage = shop.join(flush_interval_us=S, batch_rows=100)
    settle([stage])
    shop.put((0, 0), Row(0, 5))
    stage.step()
    journal = list(shop.log.journal)
    stage.abandon()
    assert shop.log.journal == journal
    assert not shop.is_alive(stage)


@pytest.mark.parametrize("seed", range(60))
def test_members_that_come_go_die_and_wake_up_write_what_one_alone_would(seed: int) -> None:
    draw = random.Random(seed)
    shop = filled(draw)
    stages = [shop.join(poll_records=5, max_rows=7)]
    for _ in range(draw.randint(20, 120)):
        act(shop, stages, draw)
    shop.log.room, shop.log.refusing = float("inf"), False
    if draw.random() < 0.5:
        for stage in stages:
            if shop.is_alive(stage):
                shop.die(stage)
        stages = [shop.join()]
    for _ in range(2):
        settle(stages)
        shop.clock.advance(S)
    settle(stages)
    assert sources(*stages) == KEYS
    alone = shop.alone()
    assert shop.read() == alone.read()
    assert shop.log.stored == alone.log.stored
    found = {(letter.stream, letter.partition, letter.offset, letter.reason) for letter in letters(shop)}
    assert found == {(letter.stream, letter.partition, letter.offset, letter.reason) for letter in letters(alone)}


def act(shop: Shop, stages: list[AlignStage], draw: random.Random) -> None:
    """Do something that happens in life."""
    what = draw.random()
    stage = draw.choice(stages)
    if what < 0.55:
        stage.step()
        stage._aligner._check()
    elif what < 0.75:
        shop.put_some(draw.choice(KEYS), draw)
    elif what < 0.82 and len(stages) < 5:
        interval_us = draw.choice([0, 0, 5])
        stages.append(shop.join(poll_records=draw.choice([3, 50]), max_rows=7, flush_interval_us=interval_us))
    elif what < 0.88 and shop.is_alive(stage):
        shop.die(stage)
    elif what < 0.93:
        shop.log.room = draw.choice([float("inf"), 0, 1, 2, 5])
        shop.log.refusing = draw.random() < 0.3
    elif what < 0.96 and len(stages) > 1 and shop.log.room > 100:
        stages.remove(stage)
        stage.close()
    elif what < 0.97 and len(stages) > 1:
        stages.remove(stage)
        if draw.random() < 0.5:
            stage.abandon()
        elif shop.is_alive(stage):
            shop.die(stage)
    else:
        shop.clock.advance(3)
