"""All that a query remembers on the cluster is such that an Exacta never forgets it."""

from exacta.client.group_administration import list_groups
from exacta.client.group_offsets import fetch_offsets
from exacta.core.groups.expiry import KEPT_METADATA
from exacta.spark.sink.decision import Decision, DecisionEntry, pack


def test_every_group_of_a_query_has_metadata_that_keeps_it(query):
    driver = query.driver()
    prepared = driver.prepare()
    results = [query.task(prepared, 0, task, [task]) for task in range(3)]
    driver.commit(results, 0, tasks=3, reads="these")
    groups = list_groups(query.client, f"{prepared.name}-")
    assert len(groups) == 4, "three markers and a decision record"
    for group in groups:
        offsets = fetch_offsets(query.client, group)
        assert [each.metadata for each in offsets.values() if not each.metadata.startswith(KEPT_METADATA)] == []


def test_every_piece_of_a_long_record_has_such_metadata():
    entries = tuple(DecisionEntry(task, 0, task, 0) for task in range(900))
    decisions = [
        Decision(3, 900, "a query", "file:/a", "0" * 32, entries),
        Decision.none_yet("a query", "file:/a"),
    ]
    pieces = [piece for decision in decisions for piece in pack(decision)]
    assert len(pieces) > 3
    assert [piece for piece in pieces if not piece.startswith(KEPT_METADATA)] == []
