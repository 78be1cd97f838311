"""What a coordinator says of a transactional id, or of a group, which must be there."""

from collections.abc import Sequence

from exacta.client.group_description import Member, describe_group
from exacta.client.routing import Client
from exacta.client.transactions import describe_transaction


def state_of(client: Client, transactional_id: str) -> str:
    """Return the state of the transactional id's transaction, by Kafka's words."""
    found = describe_transaction(client, transactional_id)
    assert found is not None, f"{transactional_id} is not there"
    return found.state


def members_of(client: Client, group: str) -> Sequence[Member]:
    """Return the members of a group."""
    found = describe_group(client, group)
    assert found is not None, f"{group} is not there"
    return found.members
