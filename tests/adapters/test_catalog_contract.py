"""The contract of the ledger's port, continued: the brokers, the catalog, and when an object or a group may go.

It is run on every ledger that is there (`ledger_benches.py`).
"""

from collections.abc import Sequence

from exacta.ports.shared import (
    Appended,
    CatalogChange,
    CatalogEntry,
    Claimed,
    Kind,
    Ledger,
    SharedBroker,
    Superseded,
)
from exacta.ports.shared.ledger import GONE_AFTER_MS, SWEEP_AFTER_MS
from tests.adapters.ledger_benches import Ability, LedgerBench, call, group, run, tail, take_lead, together, wait


def entry(key: str, base: int = 0, kind: Kind = Kind.WRITTEN, generation: int = 0) -> CatalogEntry:
    return CatalogEntry(key, kind, base, base + 5, generation, (1 << 32) - 1, 1 << 40, (1 << 32) - 2, 1 << 33, 17)


def broker(node_id: int, instance: str = "first", catalog: int = 0) -> SharedBroker:
    return SharedBroker(node_id, instance, b"host \0 %d" % node_id, catalog, 1 << 41)


def change(ledgers: LedgerBench, ledger: Ledger, epoch: int, *added: CatalogEntry, removed: Sequence[str] = ()) -> int:
    """Intend and make a change, and return the version."""
    wait(ledgers, ledger.intend, [each.key for each in added])
    version = wait(ledgers, ledger.change_catalog, epoch, CatalogChange(added, removed))
    assert isinstance(version, int)
    return version


def keys(ledgers: LedgerBench, ledger: Ledger) -> list[str]:
    """Return the keys of the present entries."""
    return [each.key for each in wait(ledgers, ledger.read_catalog).entries]


def sweep(ledgers: LedgerBench, ledger: Ledger) -> list[str]:
    """Return the keys of the objects that can be deleted."""
    return list(wait(ledgers, ledger.sweep))


# --- brokers ----------------------------------------------------------------------------------------------------------


def test_brokers_are_known_to_all_as_they_announce_themselves(ledgers: LedgerBench):
    first, second = ledgers.open(), ledgers.open()
    assert wait(ledgers, second.announce, broker(7)) == Appended()
    ledgers.pass_ms(1_000)
    assert wait(ledgers, first.announce, broker(3)) == Appended()
    seen = wait(ledgers, ledgers.open().read_brokers)
    assert [each.broker for each in seen] == [broker(3), broker(7)]
    assert 0 <= seen[0].age_ms < 1_000 <= seen[1].age_ms < 10_000
    assert wait(ledgers, second.announce, broker(7, catalog=4)) == Appended()
    seen = wait(ledgers, first.read_brokers)
    assert [each.broker for each in seen] == [broker(3), broker(7, catalog=4)]
    assert seen[1].age_ms < 1_000


def test_second_instance_with_a_node_id_is_refused_while_the_first_one_lives(ledgers: LedgerBench):
    first, second = ledgers.open(), ledgers.open()
    assert wait(ledgers, first.announce, broker(1)) == Appended()
    for _ in range(3):
        assert wait(ledgers, second.announce, broker(1, "second")) == Superseded(0)
        assert wait(ledgers, second.announce, broker(2, "second")) == Appended()
        assert wait(ledgers, first.announce, broker(1)) == Appended()
    assert [each.broker.instance for each in wait(ledgers, second.read_brokers)] == ["first", "second"]


def test_of_two_instances_at_once_one_is_refused(ledgers: LedgerBench):
    brokers = [ledgers.open(), ledgers.open()]
    for node_id in range(20):
        announced = [call(ledgers, each.announce, broker(node_id, str(n))) for n, each in enumerate(brokers)]
        told = together(ledgers, *announced)
        assert sorted(told, key=str) == [Appended(), Superseded(0)]
        seen = wait(ledgers, brokers[0].read_brokers)[-1].broker
        assert seen == broker(node_id, str(told.index(Appended())))


def test_next_instance_need_not_wait_when_the_session_of_the_first_has_ended(ledgers: LedgerBench):
    first, second = ledgers.open(), ledgers.open()
    assert wait(ledgers, first.announce, broker(1)) == Appended()
    first.close()
    closed_ms = wait(ledgers, second.read_head).now_ms
    while (told := wait(ledgers, second.announce, broker(1, "second"))) != Appended():
        assert told == Superseded(0)  # the end has not come there yet
        assert wait(ledgers, second.read_head).now_ms < closed_ms + GONE_AFTER_MS / 2
    assert [each.broker for each in wait(ledgers, second.read_brokers)] == [broker(1, "second")]


def test_broker_that_is_silent_for_long_is_gone_and_comes_back_only_if_nobody_has_its_node_id(ledgers: LedgerBench):
    silent, replaced, other = ledgers.open(), ledgers.open(), ledgers.open()
    assert wait(ledgers, silent.announce, broker(1)) == Appended()
    assert wait(ledgers, replaced.announce, broker(2)) == Appended()
    ledgers.pass_ms(GONE_AFTER_MS - 1_000)
    assert len(wait(ledgers, other.read_brokers)) == 2
    ledgers.pass_ms(1_000)
    assert wait(ledgers, other.read_brokers) == []
    assert wait(ledgers, other.announce, broker(2, "second")) == Appended()
    assert wait(ledgers, replaced.announce, broker(2)) == Superseded(0)
    assert wait(ledgers, silent.announce, broker(1)) == Appended()
    assert [each.broker for each in wait(ledgers, other.read_brokers)] == [broker(1), broker(2, "second")]


# --- changes of the catalog -------------------------------------------------------------------------------------------


def test_catalog_is_read_as_it_was_changed(ledgers: LedgerBench):
    ledger = ledgers.open()
    epoch = take_lead(ledgers, ledger)
    entries = [
        entry("b", 0),
        entry("a", 5),
        entry("d", 0, Kind.CLEANED, 1),
        entry("c", 0, Kind.CLEANED, 2),
        entry("e", 1, Kind.COMPACTED),
        entry("z", 5, Kind.SNAPSHOT)._replace(index_bytes=0, index_checksum=0),
    ]
    assert change(ledgers, ledger, epoch, *reversed(entries[:3])) == 1
    assert change(ledgers, ledger, epoch, *reversed(entries[3:])) == 2
    catalog = wait(ledgers, ledgers.open().read_catalog)
    assert (catalog.version, catalog.tail_from, list(catalog.entries)) == (2, 0, entries)
    assert isinstance(catalog.entries[0].kind, Kind)
    assert change(ledgers, ledger, epoch, entry("f", 10), removed=["a", "b"]) == 3
    assert keys(ledgers, ledger) == ["f", "d", "c", "e", "z"]
    assert wait(ledgers, ledger.read_head).catalog == 3


def test_key_that_was_not_intended_is_refused_and_nothing_is_changed(ledgers: LedgerBench):
    ledger = ledgers.open()
    epoch = take_lead(ledgers, ledger)
    change(ledgers, ledger, epoch, entry("old"))
    wait(ledgers, ledger.intend, ["new"])
    refused = CatalogChange([entry("new", 5), entry("unknown", 10)], ["old"], tail_from=0)
    assert wait(ledgers, ledger.change_catalog, epoch, refused) == Superseded(epoch)
    assert keys(ledgers, ledger) == ["old"]
    assert wait(ledgers, ledger.read_head).catalog == 1
    assert wait(ledgers, ledger.change_catalog, epoch, CatalogChange([entry("new", 5)], ["old"])) == 2
    assert keys(ledgers, ledger) == ["new"]


def test_entry_to_remove_that_is_gone_refuses_all_of_a_change(ledgers: LedgerBench):
    ledger = ledgers.open()
    epoch = take_lead(ledgers, ledger)
    change(ledgers, ledger, epoch, entry("a"), entry("b", 5))
    change(ledgers, ledger, epoch, removed=["a"])
    wait(ledgers, ledger.intend, ["c"])
    refused = CatalogChange([entry("c")], ["a", "b"])
    assert wait(ledgers, ledger.change_catalog, epoch, refused) == Superseded(epoch)
    assert keys(ledgers, ledger) == ["b"]
    assert wait(ledgers, ledger.change_catalog, epoch, CatalogChange([entry("c")], ["b"])) == 3
    assert keys(ledgers, ledger) == ["c"]


def test_intent_serves_one_change(ledgers: LedgerBench):
    ledger = ledgers.open()
    epoch = take_lead(ledgers, ledger)
    wait(ledgers, ledger.intend, ["a", "b"])
    first = call(ledgers, ledger.change_catalog, epoch, CatalogChange([entry("a")]))
    second = call(ledgers, ledger.change_catalog, epoch, CatalogChange([entry("a", 5), entry("b", 10)]))
    told = together(ledgers, first, second)
    assert sorted(told, key=str) == [1, Superseded(epoch)]
    assert keys(ledgers, ledger) == (["a"] if told[0] == 1 else ["a", "b"])


def test_change_beside_a_claim_is_made_before_it_or_refused(ledgers: LedgerBench):
    leader, other = ledgers.open(), ledgers.open()
    epoch = take_lead(ledgers, leader)
    for turn in range(30):
        key = f"{turn:05}"
        wait(ledgers, leader.intend, [key])
        head = wait(ledgers, other.read_head)
        changing = call(ledgers, leader.change_catalog, epoch, CatalogChange([entry(key)]))
        assert isinstance(wait(ledgers, other.claim, head, 1, "instance"), Claimed)
        is_there = key in keys(ledgers, other)
        told = run(ledgers, changing)
        assert isinstance(told, int) is is_there
        assert is_there or told == Superseded(epoch + 1)
        assert (key in keys(ledgers, other)) is is_there
        leader, other, epoch = other, leader, epoch + 1


# --- the tail gives way to objects ------------------------------------------------------------------------------------


def test_tail_goes_on_where_it_was_offloaded_and_an_old_position_is_refused(ledgers: LedgerBench):
    ledger = ledgers.open()
    epoch = take_lead(ledgers, ledger)
    for position in (0, 5):
        assert wait(ledgers, ledger.append, group(epoch, position)) == Appended()
    wait(ledgers, ledger.intend, ["segment"])
    offloaded = CatalogChange([entry("segment")], tail_from=10)
    assert wait(ledgers, ledger.change_catalog, epoch, offloaded) == 1
    assert wait(ledgers, ledger.read_head)[4:6] == (10, 1)
    assert wait(ledgers, ledger.read_catalog).tail_from == 10
    for position in (0, 5, 15):
        assert wait(ledgers, ledger.append, group(epoch, position)) == Superseded(epoch)
    other = ledgers.open()
    assert take_lead(ledgers, other, 2) == epoch + 1
    for position in (0, 5, 10):  # a writer that was paused, and wakes
        assert wait(ledgers, ledger.append, group(epoch, position)) == Superseded(epoch + 1)
    for position in (10, 15):
        assert wait(ledgers, other.append, group(epoch + 1, position)) == Appended()
    assert [each.position for each in tail(ledgers, ledger, 10)] == [10, 15]
    assert wait(ledgers, ledger.read_head).tail_from == 10


def test_groups_stay_until_every_broker_that_is_not_gone_knows_the_catalog(ledgers: LedgerBench):
    ledger, slow, gone = ledgers.open(), ledgers.open(), ledgers.open()
    epoch = take_lead(ledgers, ledger)
    assert wait(ledgers, gone.announce, broker(3)) == Appended()
    ledgers.pass_ms(GONE_AFTER_MS)
    assert wait(ledgers, ledger.announce, broker(1)) == Appended()
    assert wait(ledgers, slow.announce, broker(2)) == Appended()
    for position in (0, 5, 10):
        assert wait(ledgers, ledger.append, group(epoch, position)) == Appended()
    wait(ledgers, ledger.intend, ["segment"])
    assert wait(ledgers, ledger.change_catalog, epoch, CatalogChange([entry("segment")], tail_from=10)) == 1
    assert wait(ledgers, ledger.announce, broker(1, catalog=1)) == Appended()
    assert sweep(ledgers, ledger) == []
    assert [each.position for each in tail(ledgers, slow)] == [0, 5, 10]
    assert wait(ledgers, slow.read_body, 5, 0, 5) == b"group"
    assert wait(ledgers, slow.announce, broker(2, catalog=1)) == Appended()
    assert wait(ledgers, ledger.append, group(epoch, 15)) == Appended()
    assert [each.position for each in tail(ledgers, slow, 10)] == [10, 15]
    if Ability.CUTS_TAIL_AT_ONCE in ledgers.abilities:
        assert tail(ledgers, slow) == []
        assert wait(ledgers, slow.read_body, 5, 0, 5) == b""


# --- sweeping ---------------------------------------------------------------------------------------------------------


def test_old_intents_are_given_up_and_no_change_takes_them_any_more(ledgers: LedgerBench):
    ledger = ledgers.open()
    epoch = take_lead(ledgers, ledger)
    wait(ledgers, ledger.intend, ["used", "old", "older"])
    change_of_used = CatalogChange([entry("used")])
    assert wait(ledgers, ledger.change_catalog, epoch, change_of_used) == 1
    ledgers.pass_ms(SWEEP_AFTER_MS - 60_000)
    wait(ledgers, ledger.intend, ["young"])
    assert sweep(ledgers, ledger) == []
    ledgers.pass_ms(60_000)
    assert sorted(sweep(ledgers, ledger)) == ["old", "older"]
    assert wait(ledgers, ledger.change_catalog, epoch, CatalogChange([entry("old", 5)])) == Superseded(epoch)
    assert wait(ledgers, ledger.change_catalog, epoch, CatalogChange([entry("young", 5)])) == 2
    wait(ledgers, ledger.forget, ["old"])
    assert sweep(ledgers, ledgers.open()) == ["older"]
    wait(ledgers, ledger.forget, ["older", "unknown"])
    assert sweep(ledgers, ledger) == []
    assert keys(ledgers, ledger) == ["used", "young"]


def test_change_beside_a_sweep_keeps_its_object_or_is_refused(ledgers: LedgerBench):
    ledger, sweeper = ledgers.open(), ledgers.open()
    epoch = take_lead(ledgers, ledger)
    for turn in range(30):
        key = f"{turn:05}"
        wait(ledgers, ledger.intend, [key])
        ledgers.pass_ms(SWEEP_AFTER_MS)
        sweeping = call(ledgers, sweeper.sweep)
        changing = call(ledgers, ledger.change_catalog, epoch, CatalogChange([entry(key)]))
        swept, told = together(ledgers, sweeping, changing)
        assert (list(swept), told) in [([], len(keys(ledgers, ledger))), ([key], Superseded(epoch))]
        assert (key in keys(ledgers, ledger)) is not (key in swept)
        wait(ledgers, sweeper.forget, [key])


def test_removed_object_goes_when_it_is_old_and_every_broker_has_seen_the_catalog_without_it(ledgers: LedgerBench):
    ledger, slow = ledgers.open(), ledgers.open()
    epoch = take_lead(ledgers, ledger)
    assert change(ledgers, ledger, epoch, entry("a"), entry("b", 5)) == 1
    assert change(ledgers, ledger, epoch, entry("c"), removed=["a"]) == 2
    for node_id, each in enumerate([ledger, slow]):
        assert wait(ledgers, each.announce, broker(node_id, catalog=2)) == Appended()
    assert sweep(ledgers, ledger) == []  # it is too young
    ledgers.pass_ms(SWEEP_AFTER_MS)
    assert wait(ledgers, ledger.announce, broker(0, catalog=2)) == Appended()
    assert wait(ledgers, slow.announce, broker(1, catalog=1)) == Appended()
    assert sweep(ledgers, ledger) == []  # one broker may still read it
    assert wait(ledgers, slow.announce, broker(1, catalog=2)) == Appended()
    assert sweep(ledgers, ledger) == ["a"]
    assert sweep(ledgers, slow) == ["a"]
    wait(ledgers, slow.forget, ["a"])
    assert sweep(ledgers, ledger) == []
    assert keys(ledgers, ledger) == ["c", "b"]


def test_broker_that_is_gone_holds_up_no_sweep(ledgers: LedgerBench):
    ledger, gone = ledgers.open(), ledgers.open()
    epoch = take_lead(ledgers, ledger)
    assert change(ledgers, ledger, epoch, entry("a")) == 1
    assert change(ledgers, ledger, epoch, removed=["a"]) == 2
    ledgers.pass_ms(SWEEP_AFTER_MS)
    assert wait(ledgers, gone.announce, broker(1, catalog=1)) == Appended()
    assert sweep(ledgers, ledger) == []
    ledgers.pass_ms(GONE_AFTER_MS)
    assert sweep(ledgers, ledger) == ["a"]
