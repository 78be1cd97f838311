"""The broker's options for its front for Apache Pulsar's clients; without `--pulsar-listen` they do nothing."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from exacta.config.ranges import LONG_MAX
from exacta.core.state.limits import Limits


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
    pulsar_transaction_repeat: Annotated[
        str,
        Meta(
            pattern="idempotent|strict",
            description="What a Pulsar client is told that ends a transaction once more in the same way: success "
            "(idempotent), or that it is not found (strict), as Apache Pulsar tells it.",
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
            description="Most outcomes of Pulsar clients' transactions that are remembered: the latest ones.",
        ),
    ] = Limits().max_ended_handles
