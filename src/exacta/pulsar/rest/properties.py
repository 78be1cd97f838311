"""The properties of a topic, which are its own configurations under the names that Kafka's tools know.

Owns what a property may be: a configuration of topics with a value that it can have, such as
`transaction.buffer=sidecar`. Any other name is refused, since nothing would go by it.
"""

from collections.abc import Mapping

from msgspec import json

from exacta.config.topic import TOPIC_CONFIGS, UnfitValue, checked, require_consistent
from exacta.core.commands import SetTopicConfigs
from exacta.core.rejections import Rejection
from exacta.front.broker import Broker
from exacta.front.untrusted_json import NoJson, decode_json
from exacta.ports.log import Answer
from exacta.pulsar.rest.request import NOT_FOUND, NOT_IMPLEMENTED, PRECONDITION_FAILED, RestRequest
from exacta.pulsar.topic_names import NamedTopic
from exacta.pulsar.topics import read_ordinary_topic

Properties = dict[str, str]

_IN_BODY: json.Decoder[Properties | None] = json.Decoder(Properties | None)


def in_body(request: RestRequest) -> Properties | None:
    """Read the properties from the body, if there is one; answer a bad request and return None."""
    try:
        found = decode_json(request.body or b"null", _IN_BODY)
    except NoJson as error:
        request.refuse_with(400, f"the body must be an object of strings: {error}")
        return None
    return found or {}


def as_configs(request: RestRequest, properties: Mapping[str, str], present: Mapping[str, str]) -> Properties | None:
    """Return a topic's configurations with these properties; None: one is refused, and the request is answered so."""
    configs = dict(present)
    unknown = next((name for name in properties if name not in TOPIC_CONFIGS), None)
    if unknown is not None:
        request.refuse_with(NOT_IMPLEMENTED, f"a topic has no property {unknown!r}: properties are its configurations")
        return None
    try:
        configs |= {name: checked(name, value) for name, value in properties.items()}
        require_consistent(configs)
    except UnfitValue as unfit:
        request.refuse_with(PRECONDITION_FAILED, str(unfit))
        return None
    return configs


def get(broker: Broker, request: RestRequest) -> None:
    """Answer with the topic's own configurations."""
    found = _there(broker, request)
    if found is not None:
        _, configs = found
        broker.when_durable(request, lambda: request.reply_json(configs))


def update(broker: Broker, request: RestRequest) -> None:
    """Set some properties; the others stay."""
    given = in_body(request)
    found = None if given is None else _there(broker, request)
    if given is None or found is None:
        return
    topic, present = found
    configs = as_configs(request, given, present)
    if configs is not None:
        _set(broker, request, topic, configs)


def remove(broker: Broker, request: RestRequest) -> None:
    """Remove one property, so that the broker's option counts again."""
    key = request.http.query_params.get("key", "")
    if not key:
        request.refuse_with(PRECONDITION_FAILED, "the parameter key must name the property")
        return
    found = _there(broker, request)
    if found is not None:
        topic, present = found
        configs = as_configs(request, {}, {each: value for each, value in present.items() if each != key})
        if configs is not None:
            _set(broker, request, topic, configs)


def _there(broker: Broker, request: RestRequest) -> tuple[NamedTopic, Properties] | None:
    """Return the topic and its configurations; None: it is not there, and the request is answered so."""
    topic = read_ordinary_topic(request, request.topic)
    if topic is None:
        return None
    if topic.name.partition is not None:
        request.refuse_with(PRECONDITION_FAILED, "a partition has the properties of its topic")
        return None
    present = broker.topic_configs(topic.log_name)
    if present is None:
        broker.when_durable(request, lambda: _refuse_unknown(request, topic))
        return None
    return topic, dict(present)


def _refuse_unknown(request: RestRequest, topic: NamedTopic) -> None:
    request.refuse_with(NOT_FOUND, f"Topic {topic} not found")


def _set(broker: Broker, request: RestRequest, topic: NamedTopic, configs: Properties) -> None:
    def done(answer: Answer) -> None:
        if answer is Rejection.UNKNOWN_TOPIC_OR_PARTITION:
            _refuse_unknown(request, topic)
        elif isinstance(answer, Rejection):
            request.reject(answer)
        else:
            request.reply_nothing()

    broker.ask(request, SetTopicConfigs(topic=topic.log_name, configs=configs), done)
