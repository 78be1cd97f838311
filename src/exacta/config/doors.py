"""The broker's option for who may come in by its doors without a login."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta


@dataclass(frozen=True, kw_only=True)
class DoorOptions:
    """The option for all doors, with its default."""

    allow_anonymous: Annotated[
        str,
        Meta(
            pattern=r"([A-Za-z0-9_.-]+(,[A-Za-z0-9_.-]+)*)?",
            description="Doors, with commas between them, by which clients of other machines may come in without a "
            "login: PLAINTEXT or another Kafka listener, PULSAR, PULSAR_TLS, WEB, WEB_TLS. Without it, a door that "
            "other machines reach must have a login: SASL, or ssl.client.auth=required.",
        ),
    ] = ""
