"""A broker for the demo's own tests."""

import pytest


@pytest.fixture
def broker():
    import exacta

    with exacta.Broker() as embedded:
        yield embedded
