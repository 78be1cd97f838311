"""One transaction over both protocols: Kafka's producer takes an amount, and Pulsar's side gives it.

Chance decides which side opens the transaction, and which one commits it. If Pulsar's side does, Kafka's producer is
told to commit after that, as the product's pages say.
"""

import random
import time

from confluent_kafka import KafkaError, KafkaException, Producer

from exacta.client.errors import ClientError
from exacta.client.joint import COORDINATOR_NUMBER, join
from exacta.client.routing import Client
from exacta.client.security import Cluster
from exacta.verify.workload.clients import CALL_S
from exacta.verify.workload.notes import Notes
from exacta.verify.workload.plan import Plan
from exacta.verify.workload.producing import Transactor
from exacta.verify.workload.pulsar.side import Lost, Refused, Side
from exacta.verify.workload.pulsar.transacting import TIMEOUT_MS
from exacta.verify.workload.spec import Spec


class JointTransactor(Transactor):
    """A transactional id whose transactions have a part of Pulsar's: every record but the first."""

    def __init__(self, spec: Spec, notes: Notes) -> None:
        super().__init__(spec, notes)
        self._chance = random.Random(f"{spec.seed} joint")
        self._side = Side(spec.pulsar)
        cluster = Cluster(bootstrap=spec.client["bootstrap.servers"], client_id=spec.client["client.id"])
        self._client = Client(cluster, call_timeout_ms=CALL_S * 1000)
        self._transaction = -1

    def _send(
        self, producer: Producer, plan: Plan, which: range, offsets: list[int | None], flush_s: float = CALL_S
    ) -> None:
        try:
            for number in which:
                if number == 0:
                    self._open(producer, plan, offsets, flush_s)
                    continue
                topic, partition, value = plan.records[number]
                now_ms = int(time.time() * 1000)
                offsets[number] = self._side.send((topic, partition), value, self._transaction, now_ms)
        except (Lost, Refused, ClientError) as error:
            raise _to_abort(error) from error

    def _open(self, producer: Producer, plan: Plan, offsets: list[int | None], flush_s: float) -> None:
        """Write the first record by Kafka's side, in a transaction of which both sides know then."""
        transactional_id = self._spec.transactional_id
        opened_by_pulsar = self._chance.random() < 0.5
        if opened_by_pulsar:
            self._transaction = self._side.begin(TIMEOUT_MS)
            join(self._client, transactional_id, (COORDINATOR_NUMBER, self._transaction))
        super()._send(producer, plan, range(1), offsets, flush_s)
        producer.flush(flush_s)
        if not opened_by_pulsar:
            self._transaction = join(self._client, transactional_id)

    def _commit(self, producer: Producer) -> None:
        if self._chance.random() < 0.5:
            try:
                self._side.end(self._transaction, commit=True)
            except Refused as error:
                raise _to_abort(error) from error
            except Lost:
                pass  # whether that was done or not: Kafka's side commits as well
        super()._commit(producer)


def _to_abort(error: Exception) -> KafkaException:
    """Return the error of a transaction that must be aborted."""
    return KafkaException(KafkaError(KafkaError._FAIL, str(error), False, False, True))
