"""The properties of topics by HTTP, which are their configurations; `test_rest.py` says where else this is asked."""

import json

import pytest

from tests.pulsar.web import JSON, METADATA_JSON, Web, new_name, ours_only, partitions, path
from tests.pulsar.wire import Wire

SIDECAR = {"transaction.buffer": "sidecar"}


@ours_only
@pytest.mark.parametrize(
    ("properties", "status"),
    [
        ('{"a":"b"}', 501),
        ('{"transaction.buffer":"somewhere"}', 412),
        ('{"transaction.buffer":1}', 400),
        ("[]", 400),
        ('{"min.compaction.lag.ms":"2","max.compaction.lag.ms":"1"}', 412),
    ],
)
def test_properties_that_are_no_configurations_are_refused(web: Web, properties: str, status: int) -> None:
    name, there = new_name(), new_name()
    assert web.ask("PUT", path(there))[0] == 204
    for asked, body, media_type in (
        (path(name, "partitions"), f'{{"partitions":2,"properties":{properties}}}', METADATA_JSON),
        (path(name), properties, JSON),
        (path(there, "properties"), properties, JSON),
    ):
        found, answer = web.ask("PUT", asked, body, media_type)
        assert (found, bool(answer["reason"])) == (status, True), asked
    assert partitions(web, name)[0] == 404
    assert web.ask("GET", path(there, "properties")) == (200, {})


@ours_only
@pytest.mark.parametrize("value", [b'"\xff"', b"[" * 10_000], ids=["no UTF-8", "nested too deep"])
def test_a_body_that_cannot_be_read_is_refused(web: Web, value: bytes) -> None:
    for asked, body, media_type in (
        (path(new_name(), "partitions"), b'{"partitions":2,"since":' + value, METADATA_JSON),
        (path(new_name()), b'{"a":' + value, JSON),
        ("/admin/v2/namespaces/public/new", b'{"a":' + value, JSON),
    ):
        status, answer = web.ask("PUT", asked, body, media_type)
        assert (status, bool(answer["reason"])) == (400, True), asked


@pytest.mark.parametrize("is_partitioned", [False, True])
def test_a_topic_has_properties(web: Web, is_partitioned: bool) -> None:
    name = new_name()
    body = json.dumps(SIDECAR)
    if is_partitioned:
        whole = f'{{"partitions":2,"properties":{body}}}'
        assert web.ask("PUT", path(name, "partitions"), whole, METADATA_JSON) == (204, "")
    else:
        assert web.ask("PUT", path(name), body) == (204, "")
    properties = path(name, "properties")
    assert web.ask("GET", properties) == (200, SIDECAR)
    assert web.ask("PUT", properties, '{"retention.ms":"1000"}') == (204, "")
    assert web.ask("GET", properties) == (200, {**SIDECAR, "retention.ms": "1000"})
    assert web.ask("PUT", properties, '{"transaction.buffer":"marker"}') == (204, "")
    for _ in range(2):
        assert web.ask("DELETE", f"{properties}?key=transaction.buffer") == (204, "")
    assert web.ask("GET", properties) == (200, {"retention.ms": "1000"})


@ours_only
def test_properties_that_nobody_has_are_not_found(web: Web) -> None:
    for name, status in ((new_name(), 404), ("a-partition-1", 412), ("__consumer_offsets", 405)):
        for method, query in (("GET", ""), ("PUT", ""), ("DELETE", "?key=retention.ms")):
            found, answer = web.ask(method, path(name, "properties") + query, "{}" if method == "PUT" else None)
            assert (found, bool(answer["reason"])) == (status, True), (name, method)
    assert web.ask("DELETE", path(new_name(), "properties"))[0] == 412


@ours_only
def test_a_topic_with_the_property_is_a_sidecar_topic(web: Web) -> None:
    name, wire = new_name(), Wire(web.pulsar_url)
    assert web.ask("PUT", path(name), json.dumps(SIDECAR))[0] == 204
    wire.open_producer(name)
    receipt = wire.produce(b"a", transaction=wire.begin().txnid_least_bits)
    assert receipt.message_id.entry_id > 2**63 - 1, "it is provisional"
    wire.close()
