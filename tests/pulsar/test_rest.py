"""Pulsar's web interface by HTTP: a table of requests, each a fact about Apache Pulsar 4.2 before it is one about us.

With `EXACTA_TEST_PULSAR_WEB=http://host:port` (and `EXACTA_TEST_PULSAR=pulsar://host:port`) the same is asked of a real
Apache Pulsar.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import exacta
from exacta.protocol.pulsar import messages_pb2 as pb
from tests.pulsar.web import JSON, METADATA_JSON, Web, new_name, ours_only, partitions, path
from tests.pulsar.wire import Wire, running

COMMIT, ABORT = pb.TxnAction.COMMIT, pb.TxnAction.ABORT


@pytest.fixture
def wire(web: Web) -> Iterator[Wire]:
    opened = Wire(web.pulsar_url)
    yield opened
    opened.close()


# --- what clients ask -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t", "t-partition-0", "transaction_coordinator_assign-partition-0"])
def test_a_look_up_names_the_broker(web: Web, name: str) -> None:
    namespace = "pulsar/system" if name.startswith("transaction") else "public/default"
    status, answer = web.ask("GET", f"/lookup/v2/topic/persistent/{namespace}/{name}")
    assert status == 200
    assert answer == {
        "brokerUrl": web.pulsar_url,
        "httpUrl": web.url,
        "nativeUrl": web.pulsar_url,
        "brokerUrlSsl": "",
    }


@pytest.mark.parametrize("name", ["..", ".", "%2e%2e", "%2e"])
def test_dots_are_a_name_as_any_other(web: Web, wire: Wire, name: str) -> None:
    """No file and no path is named by a topic."""
    assert partitions(web, name)[0] == 404
    assert web.ask("GET", f"/lookup/v2/topic/persistent/public/default/{name}")[0] == 200
    full = f"persistent://public/default/{name.replace('%2e', '.')}"
    assert wire.lookup(full).response == pb.CommandLookupTopicResponse.Connect
    assert web.ask("PUT", path(name))[0] == 204
    assert partitions(web, name)[0] == 200
    assert web.ask("DELETE", path(name))[0] == 204


def test_a_path_that_is_no_utf_8_is_refused(web: Web) -> None:
    name = new_name()
    assert web.ask("PUT", path(f"{name}%ff"))[0] == 400
    assert web.ask("GET", f"/lookup/v2/topic/persistent/public/default/{name}%C3")[0] == 400


@ours_only
def test_a_query_that_is_no_utf_8_is_refused(web: Web) -> None:
    """Apache Pulsar takes such a value for "no"."""
    name = new_name()
    assert web.ask("PUT", path(name))[0] == 204
    status, answer = web.ask("DELETE", f"{path(name)}?force=%ff")
    assert (status, answer["reason"]) == (400, "the path, or the query, is no UTF-8")
    assert web.ask("DELETE", f"{path(name)}?force=t%C3%A9")[0] == 204


def test_a_topic_is_created_if_the_client_asks_for_that(web: Web) -> None:
    name = new_name()
    assert partitions(web, name)[0] == 404
    assert web.ask("GET", path(name, "partitions"))[0] == 404
    assert partitions(web, name, creates=True) == (200, {"partitions": 0, "deleted": False})


def test_there_is_a_coordinator(web: Web) -> None:
    found = web.ask("GET", "/admin/v2/persistent/pulsar/system/transaction_coordinator_assign/partitions")
    assert found == (200, {"partitions": 1, "deleted": False})


def test_the_name_of_a_partition_is_not_partitioned(web: Web) -> None:
    name = new_name()
    web.ask("PUT", path(name, "partitions"), "3")
    assert partitions(web, f"{name}-partition-1") == (200, {"partitions": 0, "deleted": False})


@pytest.mark.parametrize("asked", ["/admin/v2/brokers/health", "/admin/v2/brokers/ready"])
def test_a_broker_that_works_says_ok(web: Web, asked: str) -> None:
    assert web.ask("GET", asked) == (200, "ok")


# --- topics -----------------------------------------------------------------------------------------------------------


def test_partitions_are_created_added_and_deleted(web: Web) -> None:
    name = new_name()
    full = f"persistent://public/default/{name}"
    for method, body, status, reason in (
        ("POST", "4", 409, f"Topic {full} is not the partitioned topic."),
        ("PUT", "0", 406, "Number of partitions should be more than 0"),
        ("PUT", "3", 204, None),
        ("PUT", "3", 409, "This topic already exists"),
        ("POST", "5", 204, None),
        ("POST", "4", 422, "Desired partitions 4 can't be less than the current partitions 5."),
    ):
        answer = web.ask(method, path(name, "partitions"), body)
        assert answer == (status, "" if reason is None else {"reason": reason}), (method, body)
    assert partitions(web, name) == (200, {"partitions": 5, "deleted": False})
    status, answer = web.ask("DELETE", path(name))
    assert (status, "please call delete-partitioned-topic" in answer["reason"]) == (409, True)
    assert web.ask("DELETE", path(name, "partitions")) == (204, "")
    assert web.ask("DELETE", path(name, "partitions"))[0] == 404


def test_a_topic_that_is_not_partitioned_is_created_and_deleted(web: Web) -> None:
    name = new_name()
    full = f"persistent://public/default/{name}"
    assert web.ask("PUT", path(name)) == (204, "")
    assert web.ask("PUT", path(name), "null") == (409, {"reason": "This topic already exists"})
    assert partitions(web, name) == (200, {"partitions": 0, "deleted": False})
    assert web.ask("DELETE", path(name)) == (204, "")
    assert web.ask("DELETE", path(name)) == (404, {"reason": f"Topic {full} not found"})


@pytest.mark.parametrize(
    ("body", "media_type", "status"),
    [
        ('{"partitions":2,"properties":null}', METADATA_JSON, 204),
        ("2", METADATA_JSON, 204),
        ("2", f"{JSON}; charset=utf-8", 204),
        ("2", "application/octet-stream", 415),
        ("x", JSON, 400),
    ],
)
def test_the_number_of_partitions_is_understood(web: Web, body: str, media_type: str, status: int) -> None:
    assert web.ask("PUT", path(new_name(), "partitions"), body, media_type)[0] == status


def test_the_name_of_a_partition_is_not_created(web: Web) -> None:
    status, answer = web.ask("PUT", path(f"{new_name()}-partition-1", "partitions"), "3")
    assert (status, answer) == (412, {"reason": "Partitioned Topic Name should not contain '-partition-'"})


def test_a_topic_in_use_is_deleted_by_force_only(web: Web, wire: Wire) -> None:
    name = new_name()
    web.ask("PUT", path(name))
    wire.open_producer(name)
    status, answer = web.ask("DELETE", path(name))
    assert (status, "producers" in answer["reason"]) == (412, True)
    assert web.ask("DELETE", path(name) + "?force=true") == (204, "")


@ours_only
def test_a_topic_with_a_consumer_is_in_use(web: Web, wire: Wire) -> None:
    name = new_name()
    wire.subscribe(name)
    assert web.ask("DELETE", path(name))[0] == 412
    wire.close_consumer()
    assert web.ask("DELETE", path(name)) == (204, "")


@ours_only
@pytest.mark.parametrize(
    ("method", "asked", "body", "status"),
    [
        ("GET", "/admin/v2/persistent/pub%20lic/default/t/partitions", None, 412),
        ("GET", "/lookup/v2/topic/non-persistent/public/default/t", None, 412),
        ("GET", "/lookup/v2/topic/persistent/public/default/a%0Ab", None, 412),
        ("PUT", "/admin/v2/persistent/public/default/t/partitions", "100000", 406),
        ("PUT", "/admin/v2/persistent/public/default/t/partitions", "99999999999999999999999", 406),
        ("PUT", "/admin/v2/persistent/public/default/t/partitions", "x" * 70_000, 413),
        ("PUT", "/admin/v2/persistent/public/default/__consumer_offsets", None, 405),
        ("DELETE", "/admin/v2/persistent/public/default/__consumer_offsets/partitions", None, 405),
        ("PATCH", "/admin/v2/persistent/public/default/t/partitions", None, 405),
        ("GET", "/admin/v2/clusters/nowhere", None, 404),
        ("GET", "/admin/v2/broker-stats/topics", None, 404),
        ("GET", "/lookup/v2/topic/persistent/public/default/t/", None, 404),
        ("GET", "/admin/v2/persistent/public/default/t/stats", None, 404),
        ("PUT", "/admin/v2/persistent/public/default/t/unload", None, 404),
    ],
)
def test_what_cannot_be_is_refused(web: Web, method: str, asked: str, body: str | None, status: int) -> None:
    found, answer = web.ask(method, asked, body)
    assert found == status
    assert answer["reason"]


def test_a_name_with_a_slash_is_none(web: Web) -> None:
    assert partitions(web, "a%2Fb", creates=True)[0] in (404, 412)


# --- what tools look at first -----------------------------------------------------------------------------------------


def test_there_is_one_cluster(web: Web) -> None:
    """Test containers wait for exactly this."""
    assert web.ask("GET", "/admin/v2/clusters") == (200, ["standalone"])
    status, told = web.ask("GET", "/admin/v2/clusters/standalone")
    assert (status, told["serviceUrl"], told["brokerServiceUrl"]) == (200, web.url, web.pulsar_url)
    assert web.ask("GET", "/admin/v2/clusters/nowhere")[0] == 404


def test_tenants_and_namespaces_are_listed(web: Web) -> None:
    name = new_name()
    status, tenants = web.ask("GET", "/admin/v2/tenants")
    assert (status, {"public", "pulsar"} <= {*tenants}) == (200, True)
    assert web.ask("GET", "/admin/v2/tenants/public") == (200, {"adminRoles": [], "allowedClusters": ["standalone"]})
    web.ask("PUT", f"/admin/v2/namespaces/public/{name}")
    assert web.ask("PUT", f"/admin/v2/persistent/public/{name}/t")[0] == 204
    status, namespaces = web.ask("GET", "/admin/v2/namespaces/public")
    assert (status, {"public/default", f"public/{name}"} <= {*namespaces}) == (200, True)
    status, policies = web.ask("GET", f"/admin/v2/namespaces/public/{name}")
    assert (status, policies["replication_clusters"]) == (200, ["standalone"])


def test_topics_are_listed(web: Web) -> None:
    namespace = f"public/{new_name()}"
    web.ask("PUT", f"/admin/v2/namespaces/{namespace}")
    asked = f"/admin/v2/persistent/{namespace}"
    assert web.ask("GET", asked) == web.ask("GET", f"{asked}/partitioned") == (200, [])
    assert web.ask("PUT", f"{asked}/a") == web.ask("PUT", f"{asked}/b/partitions", "2") == (204, "")
    whole = f"persistent://{namespace}"
    status, topics = web.ask("GET", asked)
    assert (status, sorted(topics)) == (200, [f"{whole}/a", f"{whole}/b-partition-0", f"{whole}/b-partition-1"])
    assert web.ask("GET", f"{asked}/partitioned") == (200, [f"{whole}/b"])
    for kind in ("", "/partitioned"):
        assert web.ask("GET", f"/admin/v2/non-persistent/{namespace}{kind}") == (200, [])


def test_a_topic_may_be_called_partitioned(web: Web) -> None:
    namespace = f"public/{new_name()}"
    web.ask("PUT", f"/admin/v2/namespaces/{namespace}")
    asked = f"/admin/v2/persistent/{namespace}/partitioned"
    assert web.ask("PUT", asked) == (204, "")
    assert web.ask("GET", asked) == (200, [])
    assert web.ask("DELETE", asked) == (204, "")


@ours_only
def test_a_brokers_version_address_and_deduplication(web: Web) -> None:
    status, version = web.ask("GET", "/admin/v2/brokers/version")
    assert (status, version) == (200, f"exacta-{exacta.__version__}")
    for listed in ("brokers", "brokers/standalone"):
        assert web.ask("GET", f"/admin/v2/{listed}") == (200, [web.url.removeprefix("http://")])
    assert web.ask("GET", "/admin/v2/namespaces/public/default/deduplication") == (200, True)
    assert web.ask("GET", path(new_name(), "deduplicationEnabled")) == (200, True)


# --- namespaces -------------------------------------------------------------------------------------------------------


def test_a_namespace_is_created_filled_and_emptied(web: Web) -> None:
    name = f"public/{new_name()}"
    asked, topics = f"/admin/v2/namespaces/{name}", f"/admin/v2/persistent/{name}"
    policies = {"auth_policies": {"namespace_auth": {"anonymous": ["produce"]}}, "replication_clusters": ["standalone"]}
    assert web.ask("PUT", asked, json.dumps(policies)) == (204, "")
    assert web.ask("GET", f"{asked}/topics") == (200, [])
    assert web.ask("PUT", f"{topics}/a") == (204, "")
    assert web.ask("PUT", f"{topics}/b/partitions", "2") == (204, "")
    listed = [f"persistent://{name}/{local}" for local in ("a", "b-partition-0", "b-partition-1")]
    assert web.ask("GET", f"{asked}/topics?mode=PERSISTENT") == (200, listed)
    assert web.ask("GET", f"{asked}/topics?mode=NON_PERSISTENT") == (200, [])
    assert web.ask("PUT", asked) == (409, {"reason": "Namespace already exists"})
    assert web.ask("DELETE", asked) == (409, {"reason": "Cannot delete non empty namespace"})
    assert web.ask("DELETE", f"{topics}/a") == (204, "")
    assert web.ask("DELETE", f"{topics}/b/partitions") == (204, "")
    assert web.ask("DELETE", asked) == (204, "")


@ours_only
@pytest.mark.parametrize(
    ("body", "status"), [("[]", 400), ('{"deduplicationEnabled":true}', 501), ('{"schema_validation":false}', 204)]
)
def test_policies_that_nobody_would_keep_are_refused(web: Web, body: str, status: int) -> None:
    assert web.ask("PUT", "/admin/v2/namespaces/public/n", body)[0] == status


@ours_only
def test_a_list_that_is_too_long_is_refused(web: Web) -> None:
    topic = "/admin/v2/persistent/public/many/" + "x" * 150
    for number in range(2):
        assert web.ask("PUT", f"{topic}{number}/partitions", "4000") == (204, "")
    status, answer = web.ask("GET", "/admin/v2/namespaces/public/many/topics")
    assert (status, "8000 names" in answer["reason"]) == (406, True)
    assert web.ask("DELETE", f"{topic}0/partitions") == (204, "")
    assert web.ask("GET", "/admin/v2/namespaces/public/many/topics")[0] == 200


# --- transactions -----------------------------------------------------------------------------------------------------


def metadata(web: Web, least: int, most: int = 0) -> tuple[int, Any]:
    return web.ask("GET", f"/admin/v3/transactions/transactionMetadata/{most}/{least}")


def begin(wire: Wire) -> int:
    wire.request(pb.CommandTcClientConnectRequest(tc_id=0))
    least: int = wire.begin().txnid_least_bits
    return least


def test_an_open_transaction_is_described_and_one_that_has_ended_is_not_found(web: Web, wire: Wire) -> None:
    name = new_name()
    full = f"persistent://public/default/{name}"
    wire.open_producer(name)
    least = begin(wire)
    status, empty = metadata(web, least)
    assert (status, empty.pop("openTimestamp") > 1_700_000_000_000) == (200, True)
    nothing = {"txnId": f"(0,{least})", "status": "OPEN", "timeoutAt": 60_000, "ackedPartitions": {}}
    assert empty == {**nothing, "producedPartitions": {}}
    wire.add_partition(least, full)
    assert metadata(web, least)[1]["producedPartitions"] == {full: {"aborted": False}}
    receipt = wire.produce(b"a", transaction=least)
    position = f"{receipt.message_id.ledger_id}:{receipt.message_id.entry_id}"
    assert metadata(web, least)[1]["producedPartitions"] == {full: {"startPosition": position, "aborted": False}}
    wire.end(least, COMMIT)
    assert metadata(web, least)[0] == 404


def test_a_topic_has_the_name_by_which_it_was_announced(web: Web, wire: Wire) -> None:
    name = new_name()
    wire.open_producer(name)
    least = begin(wire)
    wire.add_partition(least, name)
    assert metadata(web, least)[1]["producedPartitions"] == {name: {"aborted": False}}


@pytest.mark.parametrize(("most", "least"), [(0, 2**40), (7, 1)])
def test_a_transaction_that_is_not_there(web: Web, wire: Wire, most: int, least: int) -> None:
    begin(wire)
    status, answer = metadata(web, least, most)
    assert status == 404
    assert set(answer) == {"reason"}


@pytest.mark.parametrize("number", ["-1", "x", "%D9%A1", "9" * 5000])
def test_what_is_no_number_is_no_transaction(web: Web, number: str) -> None:
    """Python does not read a number of so many digits."""
    assert web.ask("GET", f"/admin/v3/transactions/transactionMetadata/0/{number}")[0] == 404


@ours_only
def test_what_a_transaction_has_acknowledged_is_shown(web: Web, wire: Wire) -> None:
    """Apache Pulsar answers 500 where a subscription was announced that is not there, and shows no positions."""
    name = new_name()
    wire.subscribe(name)
    wire.open_producer(name)
    message_id = wire.produce(b"a").message_id
    wire.permit(1)
    assert isinstance(wire.receive(), pb.CommandMessage)
    least = begin(wire)
    wire.ask(wire.session.add_subscriptions(least, name, "s", "nowhere"))
    assert metadata(web, least)[1]["ackedPartitions"] == {name: {"s": {}, "nowhere": {}}}
    wire.acknowledge(message_id, cumulative=True, transaction=least)
    held = {"cumulativeAckPosition": f"{message_id.ledger_id}:{message_id.entry_id}"}
    assert metadata(web, least)[1]["ackedPartitions"] == {name: {"s": held, "nowhere": {}}}
    wire.end(least, ABORT)


@ours_only
@pytest.mark.parametrize("buffer", ["marker", "sidecar"])
def test_what_was_announced_is_forgotten_by_a_restart_and_what_was_written_is_not(buffer: str) -> None:
    with running(transaction_buffer=buffer) as broker:
        web, wire = Web(broker.web_url, broker.pulsar_url), Wire(broker.pulsar_url)
        wire.open_producer("written")
        wire.open_producer("announced", 1)
        least = begin(wire)
        wire.add_partition(least, "written", "announced")
        wire.produce(b"a", transaction=least)
        assert set(metadata(web, least)[1]["producedPartitions"]) == {"written", "announced"}
        wire.close()
        broker.restart()
        found = metadata(web, least)[1]["producedPartitions"]
        assert set(found) == {"persistent://public/default/written"}
        assert ("startPosition" in found["persistent://public/default/written"]) is (buffer == "marker")
