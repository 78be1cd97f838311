"""A fetch that goes by a topic's id: what a topic that was made again under the same name is to it."""

import pytest

from exacta.core.commands import CreateTopic, DeleteTopic
from exacta.core.rejections import Rejection
from exacta.ports.log import FetchPartition, FetchRequest, FetchResult
from tests.engine.rig import Rig, batch

OLD, NEW = b"o" * 16, b"n" * 16


@pytest.mark.parametrize(("topic_id", "rejection"), [(OLD, Rejection.INCONSISTENT_TOPIC_ID), (b"", None)])
def test_a_fetch_that_waits_while_the_topic_is_made_anew(topic_id: bytes, rejection: Rejection | None) -> None:
    rig = Rig()
    rig.ask(CreateTopic(topic="t", topic_id=OLD, partition_count=1))
    results: list[FetchResult] = []
    wanted = FetchPartition("t", 0, 0, 1 << 20, topic_id)
    rig.engine.fetch(FetchRequest([wanted], 60_000, 1, 1 << 20, True), results.extend)
    rig.submit(
        DeleteTopic(topic="t"),
        CreateTopic(topic="t", topic_id=NEW, partition_count=1),
        batch(b"new"),
        payloads=[None, None, b"new"],
    )
    rig.loop.settle()
    [result] = results
    assert result.rejection is rejection
    assert bool(result.records) is (rejection is None)
