"""The page of what is served is what the handlers say, and speaks of every API that Kafka has."""

import importlib
import pkgutil

import kio.schema
import pytest
from website.pages.protocol import UNSERVED

from exacta.kafka.handler import Handler
from exacta.kafka.handlers import HANDLERS
from exacta.protocol.kafka.apis import API, OUR_OWN

NEWER_THAN_KIO = {93: "StreamsGroupTopologyDescriptionUpdate", 94: "UnregisterController"}
"""The APIs of Apache Kafka 4.4 that kio 0.6 does not know; `tests/differential/test_versions.py` asks Kafka itself."""


@pytest.mark.parametrize("handler", HANDLERS.values(), ids=lambda handler: handler.name)
def test_a_version_that_is_not_served_has_its_reason(handler: Handler) -> None:
    assert bool(handler.newer) == (handler.max_version < API[handler.key].versions.last)


def test_every_api_is_served_or_has_its_reason() -> None:
    unserved = {key: name for apis in UNSERVED.values() for key, name in apis.items()}
    assert sum(map(len, UNSERVED.values())) == len(unserved), "one reason each"
    assert not unserved.keys() & HANDLERS.keys()
    served = {key: handler.name for key, handler in HANDLERS.items() if key not in OUR_OWN}
    assert served | unserved == _kafkas_apis() | NEWER_THAN_KIO


def _kafkas_apis() -> dict[int, str]:
    """Return what kio knows, which is made from Kafka's own schemas."""
    found = {}
    for module in pkgutil.walk_packages(kio.schema.__path__, "kio.schema."):
        if module.name.endswith(".request"):
            for name, value in vars(importlib.import_module(module.name)).items():
                if name.endswith("Request") and hasattr(value, "__api_key__"):
                    found[int(value.__api_key__)] = name.removesuffix("Request")
    return found
