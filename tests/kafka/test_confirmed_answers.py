"""Every answer that brings no event of its own passes `Log.confirm` (decision 0063), whatever the API and the version.

The log here confirms nothing until it is let (`tests/front/holding.py`).
"""

import pytest

from exacta.kafka.handlers import HANDLERS
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from tests.front.holding import Holding
from tests.kafka.access_cases import CASES
from tests.kafka.access_requests import Names
from tests.kafka.by_hand import Broker

WITHOUT_THE_LOG = {
    ApiKey.API_VERSIONS: "the versions of this process",
    ApiKey.SASL_AUTHENTICATE: "the login of this connection",
    ApiKey.SASL_HANDSHAKE: "the login of this connection",
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: "there is no authorizer",
    ApiKey.CREATE_ACLS: "there is no authorizer",
    ApiKey.DELETE_ACLS: "there is no authorizer",
    ApiKey.DESCRIBE_ACLS: "there is no authorizer",
    ApiKey.DESCRIBE_CLUSTER: "the configuration of this broker",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "there are no replicas that move",
    ApiKey.MOVE_LEAD: "the brokers that this one knows of",
    ApiKey.UPDATE_FEATURES: "the features of this process",
}
"""The APIs whose answers rest on nothing of the log, and what they rest on."""

ABOUT_THE_REQUEST = {
    (ApiKey.LIST_CONFIG_RESOURCES, 0): "it asks only for clients' metrics, of which there are none",
    (ApiKey.SYNC_GROUP, 5): "the request names no protocol, and it must",
}
"""Versions of others that are answered so, and why."""


@pytest.mark.parametrize("key", CASES, ids=lambda key: key.name)
def test_an_answer_without_an_event_waits_until_the_log_confirms_it(
    key: ApiKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    holding = Holding(monkeypatch)
    handler = HANDLERS[key]
    in_order = 0
    for version in range(handler.min_version, handler.max_version + 1):
        for names in (["t"], ["nobody"]):
            broker = Broker(auto_create_topics_enable=False)
            client = broker.connect()
            broker.ask(client, CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1)]), 5)
            holding.held, holding.submits = [], 0
            named = Names(topics=names, groups=names, transactional_ids=names)
            client.send(CASES[key].build(version, named), version)
            broker.settle()
            came = client.answers()
            if key in WITHOUT_THE_LOG or (key, version) in ABOUT_THE_REQUEST:
                assert came
                assert not holding.submits
            else:
                assert not came or holding.submits, (version, names)
                in_order += not came or holding.submits
            holding.release(broker.engine)
    assert in_order or key in WITHOUT_THE_LOG
