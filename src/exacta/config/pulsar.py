"""The broker's options for its front for Apache Pulsar's clients; without `--pulsar-listen` they do nothing."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta


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
    pulsar_tls_certificate: Annotated[
        str,
        Meta(
            description="File with the certificate that --pulsar-tls-listen and --web-tls-listen present, and its "
            "chain, in PEM.",
        ),
    ] = ""
    pulsar_tls_key: Annotated[
        str, Meta(description="File with the private key of pulsar.tls.certificate, in PEM, without a password.")
    ] = ""
