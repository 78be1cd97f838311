"""When the catalog is loaded, how often, and what becomes of failures."""

from collections.abc import Callable

import pytest

from exacta.adapters.local.worker import Worker
from exacta.adapters.shared.blocks import Blocks
from exacta.adapters.shared.catalog import Catalog
from exacta.adapters.shared.catalog_loader import CatalogLoader
from exacta.adapters.shared.files import ObjectFiles
from exacta.ports.journal import Failed
from exacta.ports.shared import CatalogSeen
from simulation.disk.simulated import SimulatedDisk
from tests.adapters.shared.uploads import DictStore, seen, upload, written
from tests.adapters.turns import Turns, batch


class CatalogOnly:
    """A ledger of which only the catalog is read; its answers wait until the test lets them go."""

    def __init__(self) -> None:
        self.seen: CatalogSeen | Failed = seen(1, [])
        self.asked: list[Callable[[CatalogSeen | Failed], None]] = []

    def read_catalog(self, done: Callable[[CatalogSeen | Failed], None]) -> None:
        self.asked.append(done)


class TestLoads:
    def setup_method(self) -> None:
        self.turns, self.store, self.ledger = Turns(), DictStore(), CatalogOnly()
        self.catalog = Catalog(ObjectFiles(SimulatedDisk(), self.store, Blocks(self.store)))
        self.worker = Worker("indexes")
        self.loader = CatalogLoader(self.catalog, self.ledger, self.worker, self.turns.call_soon)  # type: ignore[arg-type]
        disk, _ = written(self.turns, [batch(1, number, bytes(300)) for number in range(20)])
        self.entries = upload(disk, self.store)
        self.results: list[Failed | None] = []

    def teardown_method(self) -> None:
        self.worker.close()

    def load(self) -> None:
        self.loader.load(self.results.append)

    def answer(self, seen: CatalogSeen | Failed) -> None:
        self.ledger.asked.pop(0)(seen)

    def test_those_that_ask_meanwhile_wait_for_another_one(self) -> None:
        self.load()
        self.load()
        self.load()
        self.answer(seen(1, self.entries[:1]))
        self.turns.run_until(lambda: len(self.results) == 1)
        assert (self.catalog.version, len(self.catalog.segments)) == (1, 1)
        self.answer(seen(2, self.entries))
        self.turns.run_until(lambda: len(self.results) == 3)
        assert (self.catalog.version, len(self.catalog.segments)) == (2, len(self.entries))
        assert self.results == [None] * 3
        assert not self.ledger.asked

    def test_a_defect_is_told_and_does_not_end_the_loading(self, caplog: pytest.LogCaptureFixture) -> None:
        self.load()
        self.answer(CatalogSeen(1, 0, [None]))  # type: ignore[list-item]
        self.turns.run_until(lambda: len(self.results) == 1)
        assert isinstance(self.results[0], Failed)
        assert "by a defect" in caplog.text
        self.load()
        self.answer(seen(2, self.entries))
        self.turns.run_until(lambda: len(self.results) == 2)
        assert self.results[1] is None

    def test_an_older_catalog_changes_nothing(self) -> None:
        for version, entries in ((2, self.entries), (1, self.entries[:1])):
            self.load()
            self.answer(seen(version, entries))
            self.turns.run_until(lambda: bool(self.results))
            self.results.clear()
        assert (self.catalog.version, len(self.catalog.segments)) == (2, len(self.entries))

    def test_a_ledger_or_a_store_that_fails_is_told(self) -> None:
        self.load()
        self.answer(Failed("the reply was lost"))
        assert self.results == [Failed("the reply was lost")]
        self.load()
        self.store.is_away = True
        self.answer(seen(1, self.entries))
        self.turns.run_until(lambda: len(self.results) == 2)
        assert "503" in str(self.results[1])
        assert self.catalog.version == -1

    def test_nothing_is_taken_in_once_this_broker_leads(self) -> None:
        self.load()
        self.loader.end()
        self.answer(seen(1, self.entries))
        self.turns.run_until(lambda: bool(self.results))
        assert self.catalog.version == -1
        self.load()
        self.turns.run_until(lambda: len(self.results) == 2)
        assert not self.ledger.asked
