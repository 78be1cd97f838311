"""GET_TOPICS_OF_NAMESPACE lists the topics of a namespace, for consumers of a pattern.

`pulsar/topic_lists.py` says which topics these are. A pattern is of RE2's syntax, and is compared with the whole
name of a topic without `persistent://` and without the number of a partition, as in Apache Pulsar. One that RE2 does
not take filters nothing: the answer says so, and the client filters by itself.
"""

from collections.abc import Callable, Sequence
from functools import partial

import crc32c

from exacta.core.pattern import matcher
from exacta.core.queries.topic_lists import ordinary_topics, partition_counts
from exacta.front.broker import Broker
from exacta.front.pieces import by_pieces
from exacta.protocol.pulsar.frames import FRAME_MARGIN
from exacta.protocol.pulsar.messages_pb2 import (
    BaseCommand,
    CommandGetTopicsOfNamespace,
    CommandGetTopicsOfNamespaceResponse,
    ServerError,
)
from exacta.pulsar.at_follower import CATCHES_UP
from exacta.pulsar.context import Handler, PulsarRequest, plain_error
from exacta.pulsar.needs import OPEN_TO_ALL
from exacta.pulsar.topic_lists import topics_of

NEEDS = OPEN_TO_ALL
"""Nothing: the answer leaves out what the client may not see."""

SCHEME_END = "://"
SCHEMES = ("non-persistent", "persistent")


def handle(broker: Broker, command: CommandGetTopicsOfNamespace, request: PulsarRequest) -> None:
    """Answer with the topics that were there at once, as far as they still are, once that is durable.

    Many are matched in steps. A client that has seen them all says so by their hash, and gets none of them once more.
    An answer that would be longer than the client's frames is an error.
    """
    tenant, slash, namespace = command.namespace.partition("/")
    if not (tenant and slash and namespace) or "/" in namespace:
        text = f"{command.namespace!r} is not the name of a namespace, which is tenant/namespace"
        request.refuse(ServerError.InvalidTopicName, text)
        return
    matches = _matcher(command.topics_pattern)

    names: list[str] = []

    def look(topics: Sequence[str]) -> None:
        counts = broker.engine.view(partial(partition_counts, topics=topics))
        names.extend(topics_of(broker, request, counts, tenant, namespace, matches))

    def done() -> None:
        names.sort()
        digest = _digest(names)
        has_changed = command.topics_hash != digest
        answer = CommandGetTopicsOfNamespaceResponse(
            request_id=command.request_id,
            topics=names if has_changed else (),
            filtered=matches is not None,
            topics_hash=digest,
            changed=has_changed,
        )
        most = broker.configuration.pulsar_max_message_size
        if answer.ByteSize() > most + FRAME_MARGIN // 2:
            text = f"the {len(names)} topics and partitions of {command.namespace} take more than the {most} bytes of"
            request.refuse(ServerError.NotAllowedError, f"{text} pulsar.max.message.size: use a narrower pattern")
        else:
            request.reply(answer)

    is_listed = command.mode != CommandGetTopicsOfNamespace.NON_PERSISTENT
    topics = broker.engine.view(ordinary_topics) if is_listed else []
    by_pieces(request.in_steps, topics, look, lambda: broker.when_durable(request, done))


def _matcher(pattern: str) -> Callable[[str], object] | None:
    """Return what tells whether a topic matches; None: every one is answered."""
    scheme, has_scheme, rest = pattern.partition(SCHEME_END)
    if has_scheme:
        found = next((each for each in SCHEMES if scheme.endswith(each)), None)
        pattern = pattern if found is None else scheme.removesuffix(found) + rest
    if not pattern:
        return None
    try:
        return matcher(pattern)
    except ValueError:
        return None


def _digest(names: list[str]) -> str:
    """Return what stands for sorted names: CRC-32C with its least byte first, as Apache Pulsar has it."""
    return crc32c.crc32c(",".join(names).encode()).to_bytes(4, "little").hex()


HANDLER = Handler(
    type=BaseCommand.GET_TOPICS_OF_NAMESPACE, needs=NEEDS, at_follower=CATCHES_UP, handle=handle, refused=plain_error
)
