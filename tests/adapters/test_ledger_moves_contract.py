"""The contract of the ledger's port: a log that has come from elsewhere, one that has gone, and one that is shorter."""

from exacta.ports.shared import Appended, CatalogChange, Superseded
from tests.adapters.ledger_benches import LedgerBench, group, tail, take_lead, wait


def test_a_leader_changes_what_the_cluster_is_founded_with_and_closes_it(ledgers: LedgerBench):
    first, second = ledgers.open(), ledgers.open()
    wait(ledgers, first.found, b"first")
    epoch = take_lead(ledgers, first)
    assert wait(ledgers, first.found_again, epoch, b"again", False) == Appended()
    assert wait(ledgers, second.found, b"second") == b"again"
    epoch = take_lead(ledgers, second, 2)
    assert wait(ledgers, first.found_again, epoch - 1, b"too late", True) == Superseded(epoch)
    assert wait(ledgers, second.found_again, epoch, b"gone", True) == Appended()
    head = wait(ledgers, first.read_head)
    assert wait(ledgers, first.claim, head, 1, "instance 1") == Superseded(epoch)
    assert wait(ledgers, first.found, b"first") == b"gone"


def test_a_tail_without_groups_begins_where_the_objects_end(ledgers: LedgerBench):
    ledger = ledgers.open()
    epoch = take_lead(ledgers, ledger)
    for end in (70, 90):  # the second one is that of a copy that was begun again
        assert wait(ledgers, ledger.change_catalog, epoch, CatalogChange(tail_from=end)) > 0
        assert wait(ledgers, ledger.append, group(epoch, 0)) == Superseded(epoch)
    epoch = take_lead(ledgers, ledger)
    assert wait(ledgers, ledger.append, group(epoch, 90)) == Appended()
    assert [each.position for each in tail(ledgers, ledgers.open(), 90)] == [90]


def test_a_loss_is_accepted_in_the_epoch_of_the_leader_alone(ledgers: LedgerBench):
    ledger, other = ledgers.open(), ledgers.open()
    epoch = take_lead(ledgers, ledger)
    wait(ledgers, ledger.beat, epoch, 100)
    assert wait(ledgers, ledger.accept_loss, epoch, 200) == Appended()
    assert wait(ledgers, other.read_head).durable == 100
    assert wait(ledgers, ledger.accept_loss, epoch, 40) == Appended()
    assert wait(ledgers, other.read_head).durable == 40
    later = take_lead(ledgers, other, 2)
    assert wait(ledgers, ledger.accept_loss, epoch, 0) == Superseded(later)
    assert wait(ledgers, other.read_head).durable == 40
