"""The guard of the web front in front of Pulsar's web interface: no page of another site changes anything."""

import urllib.error
import urllib.request
from functools import partial
from typing import Any

import pytest

import exacta
from exacta.ports.authorizer import Operation, Resource
from exacta.protocol.pulsar import messages_pb2 as pb
from tests.kafka.access_rules import Rules
from tests.pulsar.web import Web, new_name, partitions, path
from tests.pulsar.wire import ANSWER_SECONDS, Wire


@pytest.mark.parametrize(
    "header", [("Host", "evil.example"), ("Origin", "http://evil.example"), ("Sec-Fetch-Site", "cross-site")]
)
def test_a_page_of_another_site_creates_no_topic(broker: exacta.Broker, header: tuple[str, str]) -> None:
    web = Web(broker.web_url, broker.pulsar_url)
    name = new_name()
    request = urllib.request.Request(
        web.url + path(name, "partitions?checkAllowAutoCreation=true"), headers=dict([header])
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=ANSWER_SECONDS)
    with refused.value:
        assert refused.value.code == 403
    assert partitions(web, name)[0] == 404


def test_a_name_that_is_allowed_by_an_option_may_be_used() -> None:
    with exacta.Broker(pulsar=True, web_allowed_hosts="proxy.example,other.example") as broker:
        for host, status in (("proxy.example", 200), ("OTHER.example:1", 200), ("third.example", 403)):
            request = urllib.request.Request(broker.web_url + "/status.html", headers={"Host": host})
            try:
                with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
                    found = answer.status
            except urllib.error.HTTPError as error:
                with error:
                    found = error.code
            assert found == status, host


def _is_one_of(allowed: set[Operation], operation: Operation, resource: Resource) -> bool:
    return operation in allowed


def test_a_transaction_is_shown_to_those_who_may_see_its_topics() -> None:
    with exacta.Broker(pulsar=True) as broker:
        web, wire = Web(broker.web_url, broker.pulsar_url), Wire(broker.pulsar_url)
        wire.open_producer("t")
        wire.request(pb.CommandTcClientConnectRequest(tc_id=0))
        least = wire.begin().txnid_least_bits
        wire.add_partition(least, "t")
        served: Any = broker._server
        for allowed, may, status in (({Operation.DESCRIBE}, True, 200), (set(), False, 403)):
            served._broker.authorizer = Rules(partial(_is_one_of, allowed))
            found = web.ask("GET", f"/admin/v3/transactions/transactionMetadata/0/{least}")
            assert (found[0], "producedPartitions" in found[1]) == (status, may)
        wire.close()
