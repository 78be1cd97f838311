"""What Apache Kafka offers beside us: every API and version of it is served here, or a page says why it is not.

Runs as `test_differential.py` does.
"""

from __future__ import annotations

from website.pages.protocol import UNSERVED

from exacta.kafka.handlers import HANDLERS
from exacta.protocol.kafka.messages.k18_api_versions import ApiVersionsRequest
from tests.differential.agree import marks
from tests.differential.side import Side

pytestmark = marks


def test_what_kafka_offers_is_served_or_listed(sides: tuple[Side, Side]) -> None:
    kafkas, ours = (side.wire.ask(ApiVersionsRequest(), 0).api_keys for side in sides)
    served = {each.api_key: (each.min_version, each.max_version) for each in ours}
    listed = {key: name for apis in UNSERVED.values() for key, name in apis.items()}
    missing = {
        each.api_key: (each.min_version, each.max_version)
        for each in kafkas
        if each.api_key not in listed
        and not (each.api_key in HANDLERS and HANDLERS[each.api_key].newer)
        and not _covers(served.get(each.api_key), each.min_version, each.max_version)
    }
    assert not missing


def _covers(served: tuple[int, int] | None, first: int, last: int) -> bool:
    return served is not None and served[0] <= first and last <= served[1]
