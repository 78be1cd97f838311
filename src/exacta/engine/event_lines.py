"""The lines of the log about events: what has become of topics, transactions, groups and subscriptions.

Owns the words, and the time of telling: a line is made before its event is applied, when the state still knows what the
event changes, and told once the event is durable. Only what an operator may want to know has a line: a commit has none.

The arguments of a line have names, so that a log in JSON has them as fields.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from exacta.core.events import (
    AclsCreated,
    AclsDeleted,
    BrokerConfigsSet,
    ClientQuotasSet,
    ConsumerGroupUpdated,
    Event,
    GroupDeleted,
    GroupSettled,
    LogStartMoved,
    PartitionsAdded,
    ProducerBound,
    ScramKeysSet,
    SubscriptionCreated,
    SubscriptionDeleted,
    TopicConfigsSet,
    TopicCreated,
    TopicDeleted,
    TransactionalIdsExpired,
    TransactionEnded,
)
from exacta.core.ids import Cause, PartitionId
from exacta.core.state.state import State
from exacta.core.state.transaction import name_of
from exacta.core.values.acl import WILDCARD, Acl

logger = logging.getLogger("exacta")
server = logger.getChild("server")
topics = logger.getChild("topics")
transactions = logger.getChild("transactions")
groups = logger.getChild("groups")
subscriptions = logger.getChild("subscriptions")
audit = logger.getChild("audit")

SHOWN = 5
"""This many partitions, or names, are named in a line."""
RULES_SHOWN = 100
"""This many access rules are named in a line, and the others in further ones."""

_ABORTS = {
    Cause.NEW_INSTANCE: (logging.INFO, "was aborted, because a new instance of its producer came"),
    Cause.TIME_OUT: (logging.WARNING, "timed out and was aborted"),
    Cause.MARKER: (logging.WARNING, "was aborted by an operator"),
    Cause.IDLE: (
        logging.INFO,
        "was aborted to make room: its client had left, and nothing took part in it",
    ),
    Cause.LOSS: (logging.WARNING, "was aborted, because the machine stopped and may have lost writes of it"),
}
"""The aborts that a transaction's own producer has not asked for."""


class EventLines:
    """Makes the lines, and tells them when they are due. `number` gives the number of the commit group that gathers."""

    def __init__(self, state: State, number: Callable[[], int]) -> None:
        self._state = state
        self._number = number
        self._waiting: deque[tuple[int, logging.Logger, int, str, dict[str, Any]]] = deque()
        self.hears: dict[type[Event], Callable[[Any], None]] = {
            TopicCreated: self._topic_created,
            TopicDeleted: self._topic_deleted,
            TopicConfigsSet: self._topic_configs_set,
            BrokerConfigsSet: self._broker_configs_set,
            PartitionsAdded: self._partitions_added,
            LogStartMoved: self._log_start_moved,
            ProducerBound: self._producer_bound,
            TransactionEnded: self._transaction_ended,
            TransactionalIdsExpired: self._transactional_ids_expired,
            GroupSettled: self._group_settled,
            ConsumerGroupUpdated: self._consumer_group_updated,
            GroupDeleted: self._group_deleted,
            SubscriptionCreated: self._subscription_created,
            SubscriptionDeleted: self._subscription_deleted,
            AclsCreated: self._acls_created,
            AclsDeleted: self._acls_deleted,
            ScramKeysSet: self._scram_keys_set,
            ClientQuotasSet: self._client_quotas_set,
        }

    def tell(self, durable_number: int) -> None:
        """Tell the lines about what lies in the commit groups up to this number."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= durable_number:
            _, area, level, text, values = waiting.popleft()
            area.log(level, text, values)

    def _later(self, area: logging.Logger, level: int, text: str, **values: object) -> None:
        if area.isEnabledFor(level):
            self._waiting.append((self._number(), area, level, text, values))

    # --- topics -------------------------------------------------------------------------------------------------------

    def _topic_created(self, event: TopicCreated) -> None:
        text = "topic '%(topic)s' was made, with partitions=%(partitions)d"
        text += ", %(configs)s" if event.configs else ""
        configs = _settings(event.configs)
        self._later(topics, logging.INFO, text, topic=event.topic, partitions=event.partition_count, configs=configs)

    def _topic_deleted(self, event: TopicDeleted) -> None:
        self._later(topics, logging.INFO, "topic '%(topic)s' was deleted", topic=event.topic)

    def _topic_configs_set(self, event: TopicConfigsSet) -> None:
        configs = _settings(event.configs) or "defaults only"
        text = "topic '%(topic)s' has other configurations now: %(configs)s"
        self._later(topics, logging.INFO, text, topic=event.topic, configs=configs)

    def _broker_configs_set(self, event: BrokerConfigsSet) -> None:
        self._later(server, logging.INFO, _SET_AT_RUN_TIME, **_set_at_run_time(event.broker_id, event.configs))

    def _partitions_added(self, event: PartitionsAdded) -> None:
        before = len(self._state.topics[event.topic].partition_ids)
        text = "topic '%(topic)s' has %(partitions)d partitions now"
        self._later(topics, logging.INFO, text, topic=event.topic, partitions=before + event.partition_count)

    def _log_start_moved(self, event: LogStartMoved) -> None:
        if not event.trimmed:  # retention has lines of its own
            text = "a client has deleted the records of %(partition)s before offset %(offset)d"
            place = _places(self._state, [event.partition_id])
            self._later(topics, logging.INFO, text, partition=place, offset=event.log_start_offset)

    # --- transactions -------------------------------------------------------------------------------------------------

    def _producer_bound(self, event: ProducerBound) -> None:
        held = self._state.transactional_ids.get(event.transactional_id)
        if held is None or event.cause is Cause.OWNER:
            return
        text = "the producer of '%(transactional_id)s' (producer id %(producer_id)d, epoch %(epoch)d) was fenced: "
        text += "'%(client_id)s' at %(client_host)s is its new instance" if event.client_id else _why(event.cause)
        self._later(
            transactions,
            logging.INFO,
            text,
            transactional_id=event.transactional_id,
            producer_id=held.producer_id,
            epoch=held.producer_epoch,
            cause=event.cause.name.lower(),
            client_id=event.client_id,
            client_host=event.client_host,
        )

    def _transaction_ended(self, event: TransactionEnded) -> None:
        transaction = self._state.transactions.get(event.transaction_id)
        if event.committed or transaction is None or event.cause not in _ABORTS:
            return
        level, words = _ABORTS[event.cause]
        text = f"the transaction of '%(transactional_id)s' {words}: it was open for %(open_seconds).1f s"
        text += " in %(partitions)s" if transaction.partitions else ""
        text += ", its producer is fenced" if event.bumps else ""
        text += ", asked for by '%(client_id)s' at %(client_host)s" if event.client_id else ""
        self._later(
            transactions,
            level,
            text,
            transactional_id=name_of(transaction),
            producer_id=event.producer_ids[0],
            epoch=event.producer_epoch,
            cause=event.cause.name.lower(),
            open_seconds=(event.at_ms - transaction.start_ms) / 1000,
            timeout_seconds=transaction.timeout_ms / 1000,
            partitions=_places(self._state, transaction.partitions),
            client_id=event.client_id,
            client_host=event.client_host,
        )

    def _transactional_ids_expired(self, event: TransactionalIdsExpired) -> None:
        text = "nothing was heard for too long of transactional ids, which are forgotten: %(transactional_ids)s"
        self._later(transactions, logging.INFO, text, transactional_ids=some_of(event.transactional_ids))

    # --- groups and subscriptions -------------------------------------------------------------------------------------

    def _group_settled(self, event: GroupSettled) -> None:
        before, now = self._state.settled.get(event.group_id), event.membership
        if event.group_id in self._state.settled_consumers:
            text = "group '%(group)s' is one of the classic protocol again: its last member of KIP-848's has gone"
            self._later(groups, logging.INFO, text, group=event.group_id)
        elif now is None:
            self._later(groups, logging.INFO, "group '%(group)s' has no members any more", group=event.group_id)
        elif before is None or before.generation != now.generation:
            self._rebalanced(event.group_id, now.generation, len(now.members))

    def _consumer_group_updated(self, event: ConsumerGroupUpdated) -> None:
        group = self._state.volatile.consumer_groups.get(event.group_id)
        before = {} if group is None else group.members
        if event.group_id in self._state.settled:
            text = "group '%(group)s' is one of KIP-848's protocol now: the first member of it has joined"
            self._later(groups, logging.INFO, text, group=event.group_id)
        members = (before.keys() | {each.member_id for each in event.members}) - set(event.gone)
        if not members:
            self._later(groups, logging.INFO, "group '%(group)s' has no members any more", group=event.group_id)
        elif group is None or group.target_epoch != event.target_epoch:
            self._rebalanced(event.group_id, event.target_epoch, len(members))

    def _rebalanced(self, group_id: str, generation: int, members: int) -> None:
        text = "group '%(group)s' was rebalanced: generation %(generation)d, members=%(members)d"
        self._later(groups, logging.INFO, text, group=group_id, generation=generation, members=members)

    def _group_deleted(self, event: GroupDeleted) -> None:
        text = "group '%(group)s' was deleted with its offsets"
        if event.expired_at_ms:
            text = "nobody has used group '%(group)s' for too long: it is forgotten with its offsets"
        self._later(groups, logging.INFO, text, group=event.group_id)

    def _subscription_created(self, event: SubscriptionCreated) -> None:
        text = "subscription '%(subscription)s' of %(partition)s was made at offset %(offset)d"
        place = _places(self._state, [event.partition_id])
        values = {"subscription": event.name, "partition": place, "offset": event.position}
        self._later(subscriptions, logging.INFO, text, **values)

    def _subscription_deleted(self, event: SubscriptionDeleted) -> None:
        place = _places(self._state, [event.partition_id])
        text = "subscription '%(subscription)s' of %(partition)s was deleted"
        self._later(subscriptions, logging.INFO, text, subscription=event.name, partition=place)

    # --- audit --------------------------------------------------------------------------------------------------------

    def _acls_created(self, event: AclsCreated) -> None:
        self._rules("access rules were made: %(rules)s", event.acls)

    def _acls_deleted(self, event: AclsDeleted) -> None:
        self._rules("access rules were deleted: %(rules)s", event.acls)

    def _rules(self, text: str, acls: Sequence[Acl]) -> None:
        """Name all of them: a rule that is not told could be hidden among others."""
        for first in range(0, len(acls), RULES_SHOWN):
            rules = ", ".join(map(_rule, acls[first : first + RULES_SHOWN]))
            self._later(audit, logging.INFO, text, rules=rules)

    def _scram_keys_set(self, event: ScramKeysSet) -> None:
        text = (
            "the keys of user '%(user)s' were changed, who logs in by %(mechanisms)s"
            if event.keys
            else "user '%(user)s' was deleted"
        )
        mechanisms = ", ".join(each.mechanism.sasl_name for each in event.keys)
        self._later(audit, logging.INFO, text, user=event.user, mechanisms=mechanisms)

    def _client_quotas_set(self, event: ClientQuotasSet) -> None:
        quotas = ", ".join(f"{key.value}={value:g}" for key, value in event.quotas.items()) or "none"
        self._later(audit, logging.INFO, "the quotas of %(entity)s are %(quotas)s", entity=event.entity, quotas=quotas)


_SET_AT_RUN_TIME = "the options that are set at run time for %(brokers)s: %(configs)s"


def tell_of_broker_configs(broker_id: str, configs: dict[str, str]) -> None:
    """Tell what is set at run time for a broker, or for all, where no event tells it: at a start."""
    server.info(_SET_AT_RUN_TIME, _set_at_run_time(broker_id, configs))


def _set_at_run_time(broker_id: str, configs: dict[str, str]) -> dict[str, str]:
    brokers = f"broker {broker_id}" if broker_id else "all brokers"
    return {"brokers": brokers, "configs": _settings(configs) or "none"}


def _why(cause: Cause) -> str:
    return {
        Cause.NEW_INSTANCE: "it has a new instance",
        Cause.LOSS: "the machine stopped and may have lost writes of it",
        Cause.TIME_OUT: "its transaction timed out",
        Cause.MARKER: "an operator aborted its transaction",
    }.get(cause, cause.name.lower().replace("_", " "))


def _places(state: State, partition_ids: Iterable[PartitionId]) -> str:
    """Return the names of partitions, or of the first of them and the number of the others."""
    found = (state.partitions[each] for each in partition_ids)
    return some_of(f"{each.topic}-{each.index}" for each in sorted(found, key=lambda each: (each.topic, each.index)))


def some_of(names: Iterable[str]) -> str:
    """Return the first names in words, and the number of the others."""
    all_names = list(names)
    more = f" and {len(all_names) - SHOWN} more" if len(all_names) > SHOWN else ""
    return ", ".join(all_names[:SHOWN]) + more


def _rule(acl: Acl) -> str:
    verb = "may" if acl.allows else "may not"
    where = "" if acl.host == WILDCARD else f" from {acl.host}"
    return f"{acl.principal} {verb} {acl.operation.value} {acl.pattern.value} {acl.kind.value} '{acl.name}'{where}"


def _settings(configs: dict[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(configs.items()))
