"""Look-up: which broker serves a topic. It is this one, whatever the topic."""

from exacta.front.broker import Broker
from exacta.pulsar.rest.request import RestRequest
from exacta.pulsar.topics import parsed_name


def handle(broker: Broker, request: RestRequest) -> None:
    """Answer at once; whether the topic is there is told to those who open something on it."""
    if parsed_name(request, request.topic) is None:
        return
    urls = request.shared.addresses.urls(request.local_host)
    answer = {
        "brokerUrl": urls.broker,
        "brokerUrlTls": urls.broker_tls,
        "httpUrl": urls.web,
        "httpUrlTls": urls.web_tls,
        "nativeUrl": urls.broker or urls.broker_tls,
    }
    # The last one is there even if it is empty; it has the same meaning for older clients.
    request.reply_json({name: url for name, url in answer.items() if url} | {"brokerUrlSsl": urls.broker_tls})
