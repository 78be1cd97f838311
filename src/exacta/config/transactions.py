"""The broker's options for transactions, transactional ids and producers."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from exacta.config.ranges import INT_MAX, LONG_MAX
from exacta.core.ids import NO_TIMEOUT_MS, TransactionVersion
from exacta.core.values.limits import Limits
from exacta.core.values.transaction_buffer import MARKER, SIDECAR


@dataclass(frozen=True, kw_only=True)
class TransactionOptions:
    """The options for transactions, transactional ids and producers, each with its default."""

    max_transactional_ids: Annotated[
        int, Meta(ge=1, le=INT_MAX, description="Most transactional ids; a further one is refused.")
    ] = Limits().max_transactional_ids
    max_producers_per_partition: Annotated[
        int,
        Meta(
            ge=1,
            le=INT_MAX,
            description="Most producers that a partition remembers; a further one takes the place of the one that has "
            "written least recently and has no transaction open.",
        ),
    ] = Limits().max_producers_per_partition
    transaction_version: Annotated[
        int,
        Meta(
            ge=int(TransactionVersion.V1),
            le=int(TransactionVersion.V2),
            description="Transaction protocol that clients are told to speak (the feature of this name, KIP-890); "
            "those that know only version 1 go on with that.",
        ),
    ] = int(TransactionVersion.V2)
    transaction_max_timeout_ms: Annotated[
        int, Meta(ge=1, le=NO_TIMEOUT_MS - 1, description="Longest transaction time-out that a producer may ask for.")
    ] = 900_000
    transaction_two_phase_commit_enable: Annotated[
        bool,
        Meta(
            description="Whether producers may take part in two-phase commits: their transactions have no time-out and "
            "can be taken over by their successors (KIP-939).",
        ),
    ] = False
    transaction_sync_every_write: Annotated[
        bool,
        Meta(
            description="Whether writes into open transactions are synced before they are acknowledged. If not, the "
            "transactions that are open when the machine stops are aborted; two-phase commits are always synced.",
        ),
    ] = False
    transaction_buffer: Annotated[
        str,
        Meta(
            pattern=f"{MARKER}|{SIDECAR}",
            description="Where a transaction's records lie until it ends, in topics that do not say it: among the "
            "others, or aside, to enter the partition when it commits (PIP-31).",
        ),
    ] = Limits().transaction_buffer
    max_staged_bytes: Annotated[
        int,
        Meta(
            ge=0,
            le=LONG_MAX,
            description="Most bytes that all open transactions have aside in sidecar topics; a further batch is "
            "refused.",
        ),
    ] = Limits().max_staged_bytes
    transactional_id_expiration_ms: Annotated[
        int, Meta(ge=1, le=LONG_MAX, description="How long an idle transactional id is remembered.")
    ] = 604_800_000
    transaction_remove_expired_transaction_cleanup_interval_ms: Annotated[
        int, Meta(ge=1, le=INT_MAX, description="How often transactional ids are looked for that are to be forgotten.")
    ] = 3_600_000
    producer_id_expiration_ms: Annotated[
        int, Meta(ge=1, le=LONG_MAX, description="How long a partition remembers an idle producer, and its sequences.")
    ] = 86_400_000
    producer_id_expiration_check_interval_ms: Annotated[
        int, Meta(ge=1, le=INT_MAX, description="How often producers are looked for that are to be forgotten.")
    ] = 600_000
