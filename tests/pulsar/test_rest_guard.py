"""The guard of the web front in front of Pulsar's web interface: no page of another site changes anything."""

import urllib.error
import urllib.request

import pytest

import exacta
from tests.pulsar.web import Web, new_name, partitions, path
from tests.pulsar.wire import ANSWER_SECONDS


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
