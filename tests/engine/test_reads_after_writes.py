"""A read names the commit group that it must see, and waits for no other (decision 0028)."""

import pytest

from exacta.ports.log import FetchPartition, FetchRequest, FetchResult
from tests.engine.rig import Rig, batch


def fetch(rig: Rig, after: int, *, read_committed: bool) -> list[FetchResult]:
    results: list[FetchResult] = []
    request = FetchRequest([FetchPartition("t", 0, 0, 1 << 20)], 0, 1, 1 << 20, read_committed)
    rig.engine.fetch(request, results.extend, after)
    return results


@pytest.mark.parametrize("read_committed", [True, False])
def test_a_fetch_waits_for_the_group_that_it_names(rig: Rig, read_committed: bool) -> None:
    written = rig.engine.submit((batch(b"one"),), lambda answers: None, [b"one"])
    [elsewhere] = fetch(rig, 0, read_committed=read_committed)
    assert elsewhere.records == [], "on other connections nobody waits"
    here = fetch(rig, written, read_committed=read_committed)
    rig.loop.turn()  # the group goes to the journal
    assert here == []
    rig.loop.turn()  # durable
    [found] = here
    assert found.records == [b"one"]
    [again] = fetch(rig, written, read_committed=read_committed)
    assert again.records == [b"one"], "what is durable is waited for no more"


@pytest.mark.exclusive
def test_a_view_names_the_group_that_it_is_of(rig: Rig) -> None:
    assert rig.engine.read(lambda state, now_ms: None, lambda seen: None) == 0, "all is durable"
    written = rig.engine.submit((batch(b"one"),), lambda answers: None, [b"one"])
    assert rig.engine.read(lambda state, now_ms: None, lambda seen: None) == written > 0
    rig.settle()
    shown: list[bool] = []
    rig.engine.when_shown([], lambda: shown.append(True), written)
    assert shown == [True]
