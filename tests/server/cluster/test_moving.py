"""A log that has moved is the same log, and starts in one place, also after a copy was killed; a loss is accepted."""

import asyncio
import json
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from exacta.adapters.local import LocalJournal
from exacta.adapters.local.files import PosixFiles
from exacta.adapters.memory import MemoryDatabase, MemoryLedger, MemoryObjects
from exacta.adapters.shared.shared_log import Witness
from exacta.config.options import configure
from exacta.core.snapshot import snapshot
from exacta.core.values.limits import Limits
from exacta.engine.recovery import replay
from exacta.engine.schema import SCHEMA
from exacta.ports.journal import Failed, GroupAppended, JournalDamaged, JournalEntry
from exacta.ports.shared import Ledger, SharedBroker, Superseded
from exacta.server import identity
from exacta.server.cluster import founding, moving, stopped
from exacta.server.cluster.accepting import accept_loss
from exacta.server.cluster.moving import Shared
from exacta.server.errors import ServerError
from exacta.server.journals import SharedPlace
from exacta.server.logins import SECRET_FILE
from exacta.server.shared_stores import FollowedStore
from simulation.disk.in_place import InPlace
from tests.adapters.turns import Turns
from tests.engine.corpus import DIRECTORY, EXPECTED
from tests.engine.test_corpus import held_by

NAME = "postgresql://database/exacta"


class Killed(Exception):
    """The process that copies was killed."""


class Killing:
    """A ledger whose process is killed at its nth call: before it, or when it was carried out."""

    def __init__(self, ledger: Ledger, at: int, *, is_done: bool) -> None:
        self._ledger = ledger
        self._at = at
        self._is_done = is_done

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._ledger, name)
        if name in ("resign", "close"):
            return call
        self._at -= 1
        if self._at:
            return call

        def killed(*arguments: Any) -> None:
            if not self._is_done:
                raise Killed
            call(*arguments[:-1], lambda _: arguments[-1](Failed("killed")))

        return killed


class Place:
    """A cluster's database and objects in memory, and a directory with every kind of event in its log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.loop = asyncio.get_running_loop()
        self.database = MemoryDatabase(self.loop, lambda: int(time.time() * 1000))
        self.objects = MemoryObjects()
        self.data = folder / "data"
        shutil.copytree(DIRECTORY / "journal", self.data / "journal")

    def ledger(self) -> MemoryLedger:
        return MemoryLedger(self.database, self.loop)

    async def copied(self, data: Path | None = None) -> moving.Copied:
        ledger = self.ledger()
        try:
            return await moving.copy_to_cluster(data or self.data, Shared(ledger, self.objects, NAME))
        finally:
            ledger.close()

    async def back(self, data: Path) -> moving.Copied:
        ledger = self.ledger()
        try:
            return await moving.copy_to_directory(Shared(ledger, self.objects, NAME), data)
        finally:
            ledger.close()

    async def killed(self, copy: Callable[[Shared], Awaitable[Any]], at: int, *, is_done: bool) -> bool:
        """Copy, and be killed at this call; False: the copy has ended before."""
        ledger = self.ledger()
        try:
            await copy(Shared(cast("Ledger", Killing(ledger, at, is_done=is_done)), self.objects, NAME))
        except (Killed, ServerError):
            return True
        finally:
            ledger.close()
        return False

    async def founded(self) -> founding.Founded:
        ledger = self.ledger()
        return founding.read(await stopped.ask(ledger.found, founding.draw()))

    async def follow(self, node_id: int = 1) -> Any:
        """Return a follower, which a broker has that starts on the cluster."""
        ledger = self.ledger()
        founding.read(await stopped.ask(ledger.found, founding.draw())).require_log()
        place = SharedPlace(
            directory=self.folder / f"cache {time.monotonic_ns()}",
            scheduler=self.loop,
            call_soon=self.loop.call_soon_threadsafe,
            configuration=configure({"postgres": "postgresql://nobody@127.0.0.1/nowhere", "node.id": node_id}),
            instance=f"instance {node_id}",
        )
        return await FollowedStore(place, Witness(), ledger, self.objects, InPlace).follow()

    async def cluster_state(self) -> bytes:
        follower = await self.follow()
        try:
            return snapshot((await asyncio.to_thread(replay, follower.begin, Limits())).state)
        finally:
            follower.close()

    async def starts(self) -> bool:
        """Return whether a broker starts on the cluster, with a log."""
        if (await stopped.ask(self.ledger().read_head)).tail_from == 0:
            return False
        try:
            (await self.founded()).require_log()
        except ServerError:
            return False
        return True


def state_of(data: Path) -> bytes:
    identity.require_log(data)
    journal = LocalJournal.open(data / "journal", Turns().call_soon, schema=SCHEMA)
    try:
        assert not journal.may_have_lost
        return snapshot(replay(journal.replay, Limits()).state)
    finally:
        journal.close()


def starts(data: Path) -> bool:
    if not (data / "journal").is_dir():
        return False
    try:
        identity.require_log(data)
    except ServerError:
        return False
    return any(each.suffix == ".log" for each in (data / "journal").iterdir())


def run(work: Callable[[Place], Awaitable[None]], tmp_path: Path) -> None:
    async def made() -> None:
        await work(Place(tmp_path))

    asyncio.run(made())


def test_a_log_is_the_same_in_a_cluster_and_in_a_directory_again(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        before = state_of(place.data)
        copied = await place.copied()
        assert await place.cluster_state() == before
        again = place.folder / "again"
        assert (await place.back(again)).end == copied.end
        assert state_of(again) == before
        assert held_by(again / "journal") == json.loads((DIRECTORY / EXPECTED).read_text())
        for name in (identity.META_FILE, SECRET_FILE):
            assert (again / name).read_bytes() == (place.data / name).read_bytes()
        for each in (DIRECTORY / "journal").iterdir():
            if each.name != "tail":  # it names the machine's present run
                assert (again / "journal" / each.name).read_bytes() == each.read_bytes(), each.name

    run(work, tmp_path)


def test_what_a_cluster_has_appended_comes_back(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        await place.copied()
        follower = await place.follow()
        event = list(follower.begin()[1])[-1]  # of a kind that says the same again
        led: asyncio.Future[Any] = place.loop.create_future()
        follower.follow(lambda _: None)
        follower.lead(led.set_result)
        journal = await led
        for _ in range(3):
            appended: asyncio.Future[Any] = place.loop.create_future()
            journal.append(journal.position, [JournalEntry(event)], appended.set_result)
            assert isinstance(await appended, GroupAppended)
        end = journal.position
        journal.close()
        again = place.folder / "again"
        assert (await place.back(again)).end == end
        files = PosixFiles(again / "journal")
        assert max(int(name[:20]) for name in files.names() if name.endswith(".log")) < end
        local = LocalJournal.open(again / "journal", Turns().call_soon, schema=SCHEMA)
        assert list(local.replay()[1])[-3:] == [event] * 3
        local.close()

    run(work, tmp_path)


def test_the_old_place_refuses_to_start_and_says_where_the_log_is(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        await place.copied()
        with pytest.raises(ServerError, match="has gone to postgresql://database/exacta"):
            identity.require_log(place.data)
        await place.back(place.folder / "again")
        with pytest.raises(ServerError, match=f"has gone to the directory {place.folder / 'again'}"):
            await place.follow()
        head = await stopped.ask(place.ledger().read_head)
        claimed = await stopped.ask(place.ledger().claim, head, 1, "one that was opened before")
        assert isinstance(claimed, Superseded)

    run(work, tmp_path)


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("at", range(1, 9))
def test_a_copy_into_a_cluster_that_is_killed_leaves_one_log(tmp_path: Path, at: int, is_done: bool) -> None:
    async def work(place: Place) -> None:
        before = state_of(place.data)
        killed = await place.killed(lambda shared: moving.copy_to_cluster(place.data, shared), at, is_done=is_done)
        both = starts(place.data), await place.starts()
        assert both != (True, True)
        assert killed or both == (False, True)
        await place.copied()
        assert (starts(place.data), await place.starts()) == (False, True)
        assert await place.cluster_state() == before

    run(work, tmp_path)


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("at", range(1, 10))
def test_a_copy_into_a_directory_that_is_killed_leaves_one_log(tmp_path: Path, at: int, is_done: bool) -> None:
    async def work(place: Place) -> None:
        before = state_of(place.data)
        await place.copied()
        again = place.folder / "again"
        killed = await place.killed(lambda shared: moving.copy_to_directory(shared, again), at, is_done=is_done)
        both = starts(again), await place.starts()
        assert both != (True, True)
        assert killed or both == (True, False)
        if not starts(again):
            await place.back(again)
        assert (starts(again), await place.starts()) == (True, False)
        assert state_of(again) == before

    run(work, tmp_path)


def test_a_copy_that_was_cut_off_is_not_what_is_moved_later(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        assert await place.killed(lambda shared: moving.copy_to_cluster(place.data, shared), 6, is_done=True)
        journal = LocalJournal.open(place.data / "journal", (turns := Turns()).call_soon, schema=SCHEMA)
        event = list(journal.replay()[1])[-1]
        turns.wait(lambda done: journal.append(journal.position, [JournalEntry(event)], done))
        end = journal.position
        journal.close()
        assert (await place.copied()).end == end
        follower = await place.follow()
        assert (follower.position, list(follower.begin()[1])[-1]) == (end, event)
        follower.close()

    run(work, tmp_path)


def test_what_runs_and_what_is_not_empty_is_refused(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        journal = LocalJournal.open(place.data / "journal", Turns().call_soon, schema=SCHEMA)
        with pytest.raises(ServerError, match="in use"):
            await place.copied()
        journal.close()
        await place.copied()
        ledger = place.ledger()
        await stopped.ask(ledger.announce, SharedBroker(7, "instance", b"", 0, 0))
        with pytest.raises(ServerError, match="broker 7 runs"):
            await place.back(place.folder / "again")
        ledger.close()
        with pytest.raises(ServerError, match="is not empty"):
            await place.back(place.data.parent)
        other = place.folder / "other"
        shutil.copytree(DIRECTORY / "journal", other / "journal")
        with pytest.raises(ServerError, match="holds a cluster already"):
            await place.copied(other)
        assert starts(other)
        with pytest.raises(ServerError, match="there is no log in"):
            await place.copied(place.folder / "nothing")

    run(work, tmp_path)


def test_a_broker_that_begins_to_lead_meanwhile_keeps_its_log(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        await place.copied()
        again, other = place.folder / "again", place.ledger()

        class Overtaken(Killing):
            def __getattr__(self, name: str) -> Any:
                call = getattr(self._ledger, name)
                if name != "read_catalog":
                    return call

                def overtaken(done: Callable[[Any], None]) -> None:
                    def read(head: Any) -> None:
                        other.claim(head, 1, "one", lambda _: call(done))

                    other.read_head(read)

                return overtaken

        shared = Shared(cast("Ledger", Overtaken(place.ledger(), 0, is_done=False)), place.objects, NAME)
        with pytest.raises(ServerError, match="has begun to lead meanwhile"):
            await moving.copy_to_directory(shared, again)
        assert (starts(again), await place.starts()) == (False, True)

    run(work, tmp_path)


def test_a_cluster_goes_on_from_what_is_there_once_its_loss_is_accepted(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        end = (await place.copied()).end
        ledger = place.ledger()
        head = await stopped.ask(ledger.read_head)
        epoch = (await stopped.ask(ledger.claim, head, 1, "one")).epoch
        await stopped.ask(ledger.beat, epoch, end + 500)  # what a broker tells that knows of more than is there
        ledger.close()
        with pytest.raises(JournalDamaged, match=f"ends at position {end}, and was durable up to {end + 500}"):
            await place.follow()
        assert await accept_loss(place.ledger()) == (end, end + 500)
        assert await accept_loss(place.ledger()) == (end, end)
        follower = await place.follow()
        assert follower.position == end
        led: asyncio.Future[Any] = place.loop.create_future()
        event = list(follower.begin()[1])[-1]
        follower.follow(lambda _: None)
        follower.lead(led.set_result)
        journal = await led
        assert journal.epoch > epoch
        appended: asyncio.Future[Any] = place.loop.create_future()
        journal.append(end, [JournalEntry(event)], appended.set_result)
        assert isinstance(await appended, GroupAppended)
        journal.close()

    run(work, tmp_path)
