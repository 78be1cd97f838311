"""The quota of a client for partitions that it lets be created and deleted (`controller_mutation_rate`, KIP-599).

A request of a newer version is told THROTTLING_QUOTA_EXCEEDED for what it asks while its client owes something. In an
older one, whose client does not know this error, everything is done, and the client waits afterwards. What fails for
another reason is given back.
"""

from exacta.core.values.quotas import QuotaKey
from exacta.kafka.context import RequestContext

KEY = QuotaKey.CONTROLLER_MUTATION_RATE
NEVER = 2**15
"""A version that no API has: the client waits afterwards."""
EXCEEDED = "the client has created or deleted partitions faster than its quota lets it (controller_mutation_rate)"


class Mutations:
    """The partitions that one request creates or deletes; `strict_since` is the version that knows the error."""

    def __init__(self, context: RequestContext, strict_since: int = NEVER) -> None:
        self._context = context
        self._is_strict = context.version >= strict_since

    def take(self, partitions: int) -> bool:
        """Count partitions that are about to change; return False where they must not."""
        context = self._context
        if context.charge is not None and self._is_strict and context.owes(KEY):
            return False
        self._count(partitions)
        return True

    def give_back(self, partitions: int) -> None:
        """Count partitions that have not changed after all."""
        self._count(-partitions)

    def end(self) -> None:
        """Let a client that knows no error for it wait for what it owes."""
        if not self._is_strict:
            self._context.owes(KEY)

    def _count(self, partitions: int) -> None:
        context = self._context
        if context.charge is not None:
            context.shared.broker.quotas.count(context.charge, KEY, partitions, context.connection.now_s() * 1000)
