"""Quotas as fronts keep them: what each client has used, and how long it must wait (KIP-13, KIP-124, KIP-219).

Owns the buckets (`core/quotas/rates.py`) of those who share a quota, and the watch that tells whose request the event
loop is at work on. Which quota holds is the core's knowledge (`core/quotas/precedence.py`).

Theory of operation. A connection looks at `held` first: where nobody has a quota nothing else is asked. Else each
request gets an `Account`, to the user and the client id. A front says what the request has used (`take`), and gets the
throttle time: it answers with this time where its protocol has room for it, and begins no further request of the
connection meanwhile (`FramedConnection.mute`).

The time of a request is what the loop's thread has had of a processor between `switch` and `switch`, no matter who
calls whom in between. It counts in percent: 100 tokens are a second. As in Apache Kafka a client waits a second at most
for what its requests took. Nobody looks at a clock for a client without such a quota.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from exacta.core.quotas.precedence import InForce, connection_rates, in_force
from exacta.core.quotas.rates import TokenBucket
from exacta.core.values.quotas import QuotaKey
from exacta.ports.log import Advice

BURST_SECONDS: Final = 1.0
"""A client that was silent may use one second's worth at once. Within ten seconds it stays within 1.1 of its quota."""

MUTATION_BURST_SECONDS: Final = 11.0
"""Topics are made many at a time, and rarely. Apache Kafka has this by its defaults (KIP-599)."""

LONGEST_THROTTLE_MS: Final = 1_000
"""The longest throttle time for what requests took, and for connections, as in Apache Kafka: a client that is silent
for longer loses its group, and connections that wait for their end must not be many."""

MOST_BUCKETS: Final = 10_000
"""The buckets that are kept, and the clients whose quotas are known without a look-up. The bucket that was used least
lately makes room. A client that makes up client ids has a bucket for each by the quota's own words."""

SLICE: Final = 0.1
"""A read may take at least this part of a second's worth, so that small quotas do not make small reads."""


class Account:
    """The account of one request."""

    __slots__ = ("client_id", "is_timed", "spent_s", "throttle_ms", "user")

    def __init__(self, user: str, client_id: str, *, is_timed: bool) -> None:
        self.user = user
        self.client_id = client_id
        self.is_timed = is_timed
        """True if its time counts."""
        self.spent_s = 0.0
        """The processor time that was not counted yet."""
        self.throttle_ms = 0
        """The longest throttle time that was found for it."""


class Quotas:
    """The quotas of one broker. `processor_clock` tells what the loop's thread has had of a processor, in seconds."""

    def __init__(self, advice: Advice, processor_clock: Callable[[], float] = time.thread_time) -> None:
        self.held = advice.client_quotas
        """The quotas; it is empty where nobody has one."""
        self.throttled: dict[QuotaKey, int] = dict.fromkeys(QuotaKey, 0)
        """The number of requests, pushes and connections that went beyond each quota."""
        self.throttled_ms: dict[QuotaKey, int] = dict.fromkeys(QuotaKey, 0)
        """The throttle times of these."""
        self._advice = advice
        self._changes = -1
        self._known: dict[tuple[str, str], dict[QuotaKey, InForce]] = {}
        self._rates: dict[str | None, float] = {}
        self._buckets: OrderedDict[tuple[QuotaKey, str | None, str | None], TokenBucket] = OrderedDict()
        self._processor_clock = processor_clock
        self._working_on: Account | None = None
        self._since_s = 0.0

    @property
    def bucket_count(self) -> int:
        """Return how many buckets are kept."""
        return len(self._buckets)

    # --- what is used -------------------------------------------------------------------------------------------------

    def charge(self, user: str, client_id: str) -> Account:
        """Return the account of a request of this client."""
        return Account(user, client_id, is_timed=QuotaKey.REQUEST_PERCENTAGE in self._of(user, client_id))

    def take(self, charge: Account, key: QuotaKey, amount: float, now_ms: float) -> int:
        """Count what a request uses, or what it gives back (below zero); return the throttle time."""
        return self._noted(charge, key, self.count(charge, key, amount, now_ms))

    def count(self, charge: Account, key: QuotaKey, amount: float, now_ms: float) -> int:
        """Do as `take` does, but for the request: its answer says nothing of the throttle time."""
        quota = self._of(charge.user, charge.client_id).get(key)
        return 0 if quota is None else self._taken(key, quota, amount, now_ms)

    def owed(self, charge: Account, key: QuotaKey, now_ms: float) -> int:
        """Return the throttle time of what was used before; 0: the request may use something."""
        quota = self._of(charge.user, charge.client_id).get(key)
        if quota is None:
            return 0
        return self._noted(charge, key, self._bucket(key, quota, now_ms).throttle_ms(quota.limit, now_ms))

    def most(self, charge: Account, key: QuotaKey, now_ms: float) -> float | None:
        """Return how much one request should use at most; None: there is no quota."""
        quota = self._of(charge.user, charge.client_id).get(key)
        if quota is None:
            return None
        return max(self._bucket(key, quota, now_ms).tokens(quota.limit, now_ms), quota.limit * SLICE)

    def connected(self, address: str, now_ms: float) -> int:
        """Count a connection from an address; return the throttle time."""
        self._refresh()
        limit = self._rates.get(address, self._rates.get(None))
        if limit is None:
            return 0
        key = QuotaKey.CONNECTION_CREATION_RATE
        bucket = self._bucket(key, InForce(limit, address), now_ms)
        throttle_ms = bucket.throttle_ms(limit, now_ms)
        if throttle_ms == 0:
            bucket.take(1, limit, now_ms)
            return 0
        throttle_ms = min(throttle_ms, LONGEST_THROTTLE_MS)
        self.throttled[key] += 1
        self.throttled_ms[key] += throttle_ms
        return throttle_ms

    def _taken(self, key: QuotaKey, quota: InForce, amount: float, now_ms: float) -> int:
        return self._bucket(key, quota, now_ms).take(amount, quota.limit, now_ms)

    def _noted(self, charge: Account, key: QuotaKey, throttle_ms: int) -> int:
        if throttle_ms > charge.throttle_ms:
            if charge.throttle_ms == 0:
                self.throttled[key] += 1
            self.throttled_ms[key] += throttle_ms - charge.throttle_ms
            charge.throttle_ms = throttle_ms
        return throttle_ms

    def _bucket(self, key: QuotaKey, quota: InForce, now_ms: float) -> TokenBucket:
        shared_by = (key, quota.user, quota.client_id)
        bucket = self._buckets.get(shared_by)
        if bucket is None:
            burst_s = MUTATION_BURST_SECONDS if key is QuotaKey.CONTROLLER_MUTATION_RATE else BURST_SECONDS
            bucket = self._buckets[shared_by] = TokenBucket(burst_s, now_ms)
            if len(self._buckets) > MOST_BUCKETS:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(shared_by)
        return bucket

    def _of(self, user: str, client_id: str) -> dict[QuotaKey, InForce]:
        self._refresh()
        known = self._known.get((user, client_id))
        if known is None:
            found = {key: in_force(self.held, key, user, client_id) for key in QuotaKey}
            known = {key: quota for key, quota in found.items() if quota is not None}
            if len(self._known) >= MOST_BUCKETS:
                self._known.clear()
            self._known[user, client_id] = known
        return known

    def _refresh(self) -> None:
        changes = self._advice.quota_changes
        if changes != self._changes:
            self._changes = changes
            self._known.clear()
            self._rates = connection_rates(self.held)

    # --- whose time it is ---------------------------------------------------------------------------------------------

    def switch(self, charge: Account | None) -> Account | None:
        """Let the time count for this request from now on, or for none; return whose it was until now."""
        before = self._working_on
        if before is not None:
            now_s = self._processor_clock()
            before.spent_s += now_s - self._since_s
            self._since_s = now_s
        elif charge is not None:
            self._since_s = self._processor_clock()
        self._working_on = charge
        return before

    def take_time(self, charge: Account, now_ms: float) -> int:
        """Count the time that a request has taken until now; return the throttle time."""
        key = QuotaKey.REQUEST_PERCENTAGE
        quota = self._of(charge.user, charge.client_id).get(key)
        if quota is None:
            return 0
        if self._working_on is charge:
            self.switch(charge)
        spent_s, charge.spent_s = charge.spent_s, 0.0
        throttle_ms = min(self._taken(key, quota, spent_s * 100, now_ms), LONGEST_THROTTLE_MS)
        return self._noted(charge, key, throttle_ms)
