"""Fixtures: a broker for both protocols' clients."""

from collections.abc import Iterator
from contextlib import closing

import pytest

import exacta
from tests.one_log.mixed import MixedTopic, running_mixed
from tests.pulsar.wire import running


@pytest.fixture
def broker() -> Iterator[exacta.Broker]:
    """A broker that serves both."""
    with running() as started:
        yield started


@pytest.fixture(scope="session", params=["whole", "compacted"])
def mixed(request: pytest.FixtureRequest) -> Iterator[MixedTopic]:
    """A topic of all kinds, and the same with the gaps that compaction leaves."""
    with running_mixed() as broker, closing(MixedTopic(broker, "t")) as topic:
        topic.write_everything()
        if request.param == "compacted":
            topic.compact()
        yield topic
