"""Set, list and remove quotas of users, clients and addresses, as an administrator does (KIP-546)."""

from collections.abc import Mapping

from exacta.client.routing import Anyone, Client, Controller
from exacta.client.topic_administration import ask
from exacta.protocol.kafka.messages.k48_describe_client_quotas import DescribeClientQuotasRequest
from exacta.protocol.kafka.messages.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)

Entity = Mapping[str, str | None]
"""The names of an entity by their types, which are Kafka's: user, client-id, ip. None is the default of its type."""


def list_quotas(client: Client) -> list[tuple[dict[str, str | None], dict[str, float]]]:
    """Return who has which quotas, in the order of the names. Raises `KafkaError`."""
    request = DescribeClientQuotasRequest()
    reply = ask(client, Anyone(), request, what="listing quotas", entries=lambda reply: [reply])
    found = [
        (
            {each.entity_type: each.entity_name for each in entry.entity},
            {each.key: each.value for each in entry.values},
        )
        for entry in reply.entries or ()
    ]
    return sorted(found, key=lambda each: [(kind, name or "") for kind, name in each[0].items()])


def alter_quotas(client: Client, entity: Entity, values: Mapping[str, float | None]) -> None:
    """Set the quotas of one entity; None removes a quota. Raises `KafkaError`."""
    entry = EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()],
    )
    request = AlterClientQuotasRequest(entries=[entry])
    ask(client, Controller(), request, what="altering quotas", entries=lambda reply: reply.entries)
