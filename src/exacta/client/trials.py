"""Try beforehand what a user may do, by requests that change nothing.

A broker judges the right before it looks for what a request names. So a producer, a group and a transactional id that
nobody has serve as well as real ones, if their names begin as those do. What may be done with a topic, the cluster says
itself (KIP-430). Each function raises `KafkaError`, whose `detail` names the right that is missing.
"""

from collections.abc import Iterable

from exacta.client.errors import KafkaError
from exacta.client.group_administration import delete_group
from exacta.client.group_offsets import fetch_offsets
from exacta.client.routing import Client
from exacta.client.topics import look_at_topic
from exacta.client.transactions import Producer, add_group, end_transaction
from exacta.protocol.kafka.acl_numbers import OPERATIONS
from exacta.protocol.kafka.errors import ErrorCode


def try_topic(client: Client, topic: str, operations: Iterable[str]) -> None:
    """Look whether the user may do all of these with a topic; pass where the cluster does not tell."""
    found = look_at_topic(client, topic)
    told = found.operations if found is not None else None
    for each in operations:
        if told is not None and OPERATIONS[each] not in told:
            lacks = f"{client.cluster.security.principal} needs the permission {each} on topic '{topic}'"
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"looking up topic '{topic}'", lacks)


def try_transactional_id(client: Client, trial: str) -> None:
    """Try to write by a transactional id that nobody has."""
    try:
        end_transaction(client, Producer(trial, 0, 0), commit=False)
    except KafkaError as error:
        # Permitted: then it is looked for, and not found.
        if error.code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            raise


def try_group(client: Client, trial: str) -> None:
    """Try to commit offsets of a group that nobody has, in a transaction that nobody has."""
    try:
        fetch_offsets(client, trial)
        add_group(client, Producer(trial, 0, 0), trial)
    except KafkaError as error:
        if error.code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            raise


def try_deleting_group(client: Client, trial: str) -> None:
    """Try to delete a group that nobody has."""
    delete_group(client, trial)
