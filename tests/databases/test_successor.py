"""Two instances with one transactional id: the second one fences the first, and no half of a transaction is left.

The first one may be stopped at any point, for as long as it likes, and go on later as a zombie.
"""

import threading
from collections.abc import Callable

import psycopg
import pytest

import exacta
from exacta.client.routing import Client
from exacta.client.transactions import init_producer_id
from tests.databases import shop
from tests.databases.conftest import NewPlace, each_kind, on_postgres, takes_minutes
from tests.databases.points import hooked
from tests.shares import is_whole, share_of

STUCK_S = 120.0


class Actor:
    """A program in a thread of its own, which stops at a point until it is told to go on."""

    def __init__(self, program: Callable[[], object], stop_at: Callable[[int, str], bool]) -> None:
        self.points: list[str] = []
        self.error: BaseException | None = None
        self._stop_at = stop_at
        self._goes_on = threading.Event()
        self._is_still = threading.Event()
        self.has_stopped = False
        self._thread = threading.Thread(target=self._run, args=(program,), daemon=True)

    def _run(self, program: Callable[[], object]) -> None:
        _here.actor = self
        try:
            program()
        except (exacta.TwoPhaseError, exacta.OutcomeUnknown, psycopg.Error) as error:
            self.error = error
        finally:
            self._is_still.set()

    def until_it_stops(self) -> None:
        """Run until it stops at its point, or ends."""
        self._thread.start()
        assert self._is_still.wait(STUCK_S)

    def to_the_end(self) -> None:
        """Let it go on to its end."""
        self._goes_on.set()
        self._thread.join(STUCK_S)
        assert not self._thread.is_alive()

    def at(self, name: str) -> None:
        """Come to a point."""
        self.points.append(name)
        if not self.has_stopped and self._stop_at(len(self.points), name):
            self.has_stopped = True
            self._is_still.set()
            assert self._goes_on.wait(STUCK_S)


_here = threading.local()


def hook(_: int, name: str) -> None:
    actor = getattr(_here, "actor", None)
    if actor is not None:
        actor.at(name)


def giving_up(place: shop.Place) -> shop.Place:
    """Return the place for an instance that may find what another one has locked, and then gives up.

    In SQLite the first one has the lock while its block runs. In PostgreSQL both insert the same number.
    """
    if place.kind == "sqlite":
        return place._replace(timeout_ms=100)
    return place._replace(timeout_ms=1_000, address=f"{place.address} options='-c lock_timeout=100'")


def stopping_at(number: int) -> Callable[[int, str], bool]:
    """Return what stops a life at its point of this number."""
    return lambda at, _: at == number


def never(_: int, __: str) -> bool:
    return False


def points_of(place: shop.Place) -> list[str]:
    """Return the points of a life that finds nothing open."""
    shop.life(place, 1)
    actor = Actor(lambda: shop.life(place, 1), never)
    with hooked(hook):
        actor.until_it_stops()
    return actor.points


@each_kind
@pytest.mark.timeout(600)
def test_a_successor_at_each_point_of_a_life(new_place: NewPlace, kind: str) -> None:
    """It comes, does all of its work, and goes; then the first one goes on."""
    place = new_place(kind)
    hasty = giving_up(place)
    points = points_of(place)
    fenced = refused = 0
    for number in share_of(range(1, len(points) + 1)):
        first = Actor(lambda: shop.life(place, 1), stopping_at(number))
        second = Actor(lambda: shop.life(hasty, 1), never)
        with hooked(hook):
            first.until_it_stops()
            assert first.points == points[:number]
            second.until_it_stops()
            first.to_the_end()
        fenced += isinstance(first.error, exacta.TakenOver)
        refused += second.error is not None
        shop.life(place, 0)
        shop.check_quickly(place)
    shop.check(place)
    if is_whole():
        assert fenced > 10
        assert refused > 10


@each_kind
@takes_minutes
@pytest.mark.timeout(7200)
def test_two_lives_that_cross(new_place: NewPlace, kind: str, reports: list[str]) -> None:
    """The first one stops at a point of its order, the second one at a point of its start; the first one ends first."""
    place = new_place(kind)
    hasty = giving_up(place)
    points = points_of(place)
    in_block = range(points.index("before Transaction.execute") + 1, len(points) + 1)
    crossings = 0
    ends: set[tuple[str, str]] = set()
    for number in in_block:
        for other in range(points.index("before Connection.send of InitProducerIdRequest") + 1, in_block[0]):
            first = Actor(lambda: shop.life(hasty, 1), stopping_at(number))
            second = Actor(lambda: shop.life(hasty, 1), stopping_at(other))
            with hooked(hook):
                first.until_it_stops()
                second.until_it_stops()
                first.to_the_end()
                second.to_the_end()
            shop.life(place, 0)
            shop.check_quickly(place)
            crossings += 1
            ends.add((type(first.error).__name__, type(second.error).__name__))
    shop.check(place)
    assert ends >= {("NoneType", "NoneType"), ("TakenOver", "NoneType")}
    reports.append(f"two-phase commits, {kind}: {crossings} crossings of two instances, which ended as {sorted(ends)}")


@on_postgres
def test_a_zombie_that_had_prepared_cannot_decide_any_more(place: shop.Place) -> None:
    """The successor finds no decision, and aborts; the zombie's row must not come after that.

    In SQLite the zombie has the lock until it ends, so that the successor has to wait.
    """
    shop.life(place, 1)
    zombie = Actor(lambda: shop.life(place, 1), _prepared())
    with hooked(hook):
        zombie.until_it_stops()
        with place.both() as successor:
            assert successor.recovered == "aborted"
            zombie.to_the_end()
            assert isinstance(zombie.error, exacta.TakenOver)
            assert "lets only that one decide" in str(zombie.error)
            assert shop.rows(place) == [1]
            assert shop.order(successor, place) == 2
    assert shop.check(place) == 2


def _prepared() -> Callable[[int, str], bool]:
    """Stop behind the answer to Produce."""
    produced = []

    def stop(_: int, name: str) -> bool:
        if name.endswith("send of ProduceRequest"):
            produced.append(name)
        return bool(produced) and name == "after Connection.receive"

    return stop


@each_kind
def test_a_zombie_that_had_decided_is_committed_by_its_successor(place: shop.Place) -> None:
    zombie = Actor(lambda: shop.life(place, 1), lambda _, name: name == "before Connection.send of EndTxnRequest")
    with hooked(hook):
        zombie.until_it_stops()
        with place.both() as successor:
            assert successor.recovered == "committed"
            assert shop.check(place) == 1
            zombie.to_the_end()
            assert zombie.error is None, "its transaction is committed"
            assert shop.order(successor, place) == 2
    assert shop.check(place) == 2


@each_kind
def test_who_was_taken_over_can_do_nothing_any_more(place: shop.Place) -> None:
    """Neither with messages, which the log refuses, nor without, which the row refuses."""
    with place.both() as old, place.both() as new:
        for _ in range(2):
            with pytest.raises(exacta.TakenOver, match=f"^another instance has taken over .* '{place.topic}': "):
                shop.order(old, place)
        shop.order(new, place)
    with place.both() as old, place.both() as new:
        with pytest.raises(exacta.TakenOver, match="lets only that one decide"), old.transaction() as transaction:
            transaction.execute("INSERT INTO orders VALUES (2)")
        assert shop.rows(place) == [1]
        shop.order(new, place)
        with pytest.raises(exacta.TakenOver):
            shop.order(old, place)
    assert shop.check(place) == 2


@each_kind
def test_recovery_after_a_failure_does_not_take_the_id_back(place: shop.Place) -> None:
    """Two instances with trouble would fence each other in turn."""

    def interrupt(_: int, name: str) -> None:
        if name == "before Connection.send of ProduceRequest":
            raise KeyboardInterrupt

    with place.both() as old:
        with hooked(interrupt), pytest.raises(KeyboardInterrupt):
            shop.order(old, place)
        with place.both() as new:
            assert new.recovered == "aborted"
            with pytest.raises(exacta.TakenOver):
                shop.order(old, place)
            shop.order(new, place)
    assert shop.check(place) == 1


@each_kind
def test_what_an_operator_aborts_is_lost_and_the_next_start_says_so(
    place: shop.Place, caplog: pytest.LogCaptureFixture
) -> None:
    def abort(_: int, name: str) -> None:
        if name == "before Connection.send of EndTxnRequest":
            with Client(place.servers) as operator:
                init_producer_id(operator, place.topic, transaction_timeout_ms=1_000)

    with place.both() as both, hooked(abort):
        assert shop.order(both, place) == 1
    assert shop.rows(place) == [1]
    assert shop.messages(place) == []
    assert "are lost" not in caplog.text
    with place.both() as both:
        assert both.recovered is None
    assert "its messages are lost: it was aborted in the log: a new instance initialised" in caplog.text


@each_kind
def test_an_instance_whose_log_was_put_back_is_refused(place: shop.Place) -> None:
    """The log of before gives pairs that the database has seen."""
    with place.both() as both:
        shop.order(both, place)
        database = place.database()
        database.open(1000)
        with database.own_transaction():
            database.change("UPDATE exacta_decisions SET holder_producer_epoch = 30000")
        database.close()
    with pytest.raises(
        exacta.TakenOver, match=r"knows a later one \(if none has started meanwhile, the log was put back"
    ):
        place.both().start()
