"""A reader is held to its quota (`consumer_byte_rate`): how much it may read at once, and when it gets nothing."""

from msgspec.structs import replace

from exacta.core.values.quotas import QuotaKey
from exacta.kafka.context import RequestContext
from exacta.ports.log import FetchResult

KEY = QuotaKey.CONSUMER_BYTE_RATE


def most_bytes(context: RequestContext, wanted: int) -> int:
    """Return how many bytes are read at most. One batch is read in any case (KIP-74)."""
    return context.most(KEY, wanted)


def within_quota(context: RequestContext, results: list[FetchResult]) -> list[FetchResult]:
    """Return what was read, or none of the records where the client has read too much before (KIP-219).

    Others who share its quota may have read while this request waited.
    """
    if context.charge is None:
        return results
    if context.owes(KEY):
        return [replace(each, records=[], aborted=()) for each in results]
    context.use(KEY, sum(len(part) for each in results for part in each.records))
    return results
