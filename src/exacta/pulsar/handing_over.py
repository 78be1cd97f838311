"""The commands by which a broker that leads no more tells clients where to go on (PIP-307)."""

from collections.abc import Iterable, Iterator

from google.protobuf.message import Message

from exacta.protocol.pulsar.commands import NO_REQUEST
from exacta.protocol.pulsar.messages_pb2 import CommandCloseConsumer, CommandCloseProducer
from exacta.pulsar.addresses import Urls


def closed_for(producers: Iterable[int], consumers: Iterable[int], urls: Urls) -> Iterator[Message]:
    """Close these producers and consumers, and name the broker at which they are to be opened again."""
    plain, by_tls = urls.broker or None, urls.broker_tls or None
    for number in producers:
        yield CommandCloseProducer(
            producer_id=number,
            request_id=NO_REQUEST,
            assigned_broker_service_url=plain,
            assigned_broker_service_url_tls=by_tls,
        )
    for number in consumers:
        yield CommandCloseConsumer(
            consumer_id=number,
            request_id=NO_REQUEST,
            assigned_broker_service_url=plain,
            assigned_broker_service_url_tls=by_tls,
        )
