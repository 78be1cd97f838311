"""The broker's options for its front for Apache Pulsar's clients; without `--pulsar-listen` they do nothing."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from exacta.config.ranges import LONG_MAX
from exacta.core.values.limits import Limits


@dataclass(frozen=True, kw_only=True)
class PulsarOptions:
    """The options for the front for Apache Pulsar's clients, each with its default."""

    pulsar_max_message_size: Annotated[
        int,
        Meta(
            ge=64 << 10,
            le=100 << 20,
            description="Largest payload of a Pulsar producer, a message or a batch; clients are told it, and cut into "
            "chunks what is larger. A topic's own max.message.bytes counts instead.",
        ),
    ] = 5 << 20
    pulsar_message_ttl_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=LONG_MAX,
            description="How long a message waits for a durable Pulsar subscription to acknowledge it, where its "
            "topic does not say; then the broker acknowledges it. 0: for ever.",
        ),
    ] = 0
    pulsar_backlog_quota_bytes: Annotated[
        int,
        Meta(
            ge=-1,
            le=LONG_MAX,
            description="Bytes of a partition that are kept only because a durable Pulsar subscription has not "
            "acknowledged them, where its topic does not say; pulsar.backlog.quota.policy acts on what is more. -1: "
            "without a bound.",
        ),
    ] = 10 << 30
    pulsar_backlog_quota_ms: Annotated[
        int,
        Meta(
            ge=-1,
            le=LONG_MAX,
            description="Age of the messages that are kept only because a durable Pulsar subscription has not "
            "acknowledged them, where its topic does not say; pulsar.backlog.quota.policy acts on what is older. -1: "
            "without a bound.",
        ),
    ] = -1
    pulsar_backlog_quota_policy: Annotated[
        str,
        Meta(
            pattern="producer_request_hold|producer_exception|consumer_backlog_eviction",
            description="What happens beyond a backlog quota, where the topic does not say: producers of both "
            "protocols are refused, and Pulsar's wait (producer_request_hold) or fail their messages "
            "(producer_exception); or the oldest messages are acknowledged (consumer_backlog_eviction).",
        ),
    ] = "producer_request_hold"
    pulsar_backlog_check_interval_ms: Annotated[
        int,
        Meta(ge=1, le=LONG_MAX, description="How often the backlogs of Pulsar's subscriptions are looked at."),
    ] = 10_000
    pulsar_transaction_repeat: Annotated[
        str,
        Meta(
            pattern="idempotent|strict",
            description="What a Pulsar client is told of a transaction that has ended: its outcome, so that the same "
            "end may be repeated with success (idempotent), or that it is not found (strict), as Apache Pulsar tells "
            "it.",
        ),
    ] = "idempotent"
    pulsar_transaction_outcome_retention_ms: Annotated[
        int,
        Meta(
            ge=1,
            le=LONG_MAX,
            description="How long the outcome of a Pulsar client's transaction is remembered, so that the end can be "
            "repeated. Afterwards the transaction is not found.",
        ),
    ] = Limits().ended_handle_retention_ms
    pulsar_transaction_outcome_retention_count: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="Most outcomes of Pulsar clients' transactions that are remembered: the latest ones. It bounds "
            "memory; raise it where more transactions end in the time that clients may repeat an end.",
        ),
    ] = Limits().max_ended_handles
