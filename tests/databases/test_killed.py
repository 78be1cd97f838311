"""The program is killed by SIGKILL at every step: a row and a message are there, both or neither."""

import itertools

import pytest

from tests.databases import shop
from tests.databases.conftest import KILLS, each_kind
from tests.databases.mortal import Lives
from tests.shares import SHARES, chosen, is_whole, share_of

pytestmark = each_kind


@pytest.mark.timeout(600)
def test_at_every_point_of_a_life(place: shop.Place, lives: Lives, reports: list[str]) -> None:
    """Each life also ends what the one before has left, before it is killed one point later."""
    lives.live(place, 1)
    points = lives.live(place, 1).points
    assert len(points) > 60
    kills = share_of(range(1, len(points) + 1))
    assert all(lives.live(place, 1, point).killed for point in kills)
    assert not lives.live(place, 1).killed
    shop.check(place)
    reports.append(f"two-phase commits, {place.kind}: killed once at each of {len(kills)} points of a transaction")


@pytest.mark.timeout(7200)
def test_at_every_point_of_a_recovery(place: shop.Place, lives: Lives, reports: list[str]) -> None:
    """A life that ends what another one has left is killed, too. Then a third one does it.

    The first one dies on both sides of the commit of the database: prepared and not decided, decided and not ended.
    With `make test-with WHAT=two-phase` it dies at each point at which something may be in the log, and the second
    one dies at points at which nothing can have changed, too.
    """
    lives.live(place, 1)
    points = lives.live(place, 1).points
    last_commit = max(at for at, name in enumerate(points, 1) if name.endswith(".commit"))
    written = points.index("after Connection.send of AddOffsetsToTxnRequest") + 1
    taken_over = points.index("before Connection.send of InitProducerIdRequest") + 1
    kills = 0
    for first in range(written, len(points) + 1) if KILLS else (last_commit - 1, last_commit):
        share = chosen()
        for second in itertools.count((1 if KILLS else taken_over) + (share or 0), 1 if share is None else SHARES):
            left = lives.live(place, 1, first)
            assert left.points == points[:first]
            if not lives.live(place, 0, second).killed:
                break
            lives.live(place, 0)
            shop.check_quickly(place)
            kills += 2
    assert kills > (1500 if KILLS else 50) or not is_whole()
    shop.check(place)
    reports.append(f"two-phase commits, {place.kind}: {kills} kills, two in a row before a life that ends well")
