"""The bytes that each table of the state takes: of all owners, and of each owner; and the bounds of both.

A table is what clients fill: topics, members of groups, offsets, and so on. Its bytes are counted by `weights.py`, as
events are folded. An owner is the host whose request has made an entry. It is kept in memory only: what was there when
the broker started belongs to nobody. An entry stays its first owner's, also where others let it grow.

A share counts only where a table is more than half full. From there on an owner may let its entries grow up to a
quarter of the bound. So one host alone fills half of a table at most, and everybody else has the other half. A client
that has no owner has no share: it is one of an embedded broker, on the same machine.
"""

from collections.abc import Hashable
from enum import Enum

from msgspec import Struct, field


class Table(Enum):
    """The tables that clients fill. The value is the name of the bound in `Limits`."""

    TOPICS = "max_topic_bytes"
    MEMBERS = "max_member_bytes"
    OFFSETS = "max_offset_bytes"
    TRANSACTIONAL_IDS = "max_transactional_id_bytes"
    TRANSACTIONS = "max_transaction_bytes"
    HANDLES = "max_open_handles"
    """It counts transactions, and not bytes."""
    PRODUCERS = "max_producer_bytes"
    ABORTED = "max_aborted_bytes"
    STAGED = "max_staging_bytes"
    WRITERS = "max_writer_bytes"
    SUBSCRIPTIONS = "max_subscription_bytes"
    DELIVERIES = "max_delivery_bytes"
    ACLS = "max_acl_bytes"
    USERS = "max_user_bytes"
    QUOTAS = "max_quota_bytes"


class Charge(Struct):
    """The owner of an entry, and the bytes of the entry that came since its owner is known."""

    owner: str
    size: int = 0


class Usage(Struct):
    """The bytes of one table."""

    total: int = 0
    owned: dict[str, int] = field(default_factory=dict)
    """The bytes of each owner."""
    charges: dict[Hashable, Charge] = field(default_factory=dict)
    """The entries that have an owner, by their keys."""

    def own(self, key: Hashable, owner: str) -> None:
        """Let the entry of this key, which is about to be made, belong to an owner."""
        self.charges.setdefault(key, Charge(owner))

    def change(self, key: Hashable, size: int) -> None:
        """Count bytes more for the entry of this key, or less where `size` is negative."""
        self.total += size
        charge = self.charges.get(key)
        if charge is None:
            return
        size = max(size, -charge.size)
        charge.size += size
        left = self.owned.get(charge.owner, 0) + size
        if left:
            self.owned[charge.owner] = left
        else:
            self.owned.pop(charge.owner, None)
        if not charge.size:
            del self.charges[key]

    def has_room(self, most: int, growth: int, key: Hashable, size: int, owner: str) -> bool:
        """Return whether the table may grow so much, and so the entry of this key by `size`, which `owner` asks for."""
        total = self.total + growth
        if total > most and growth > 0:
            return False
        if total <= most // 2:
            return True
        charge = self.charges.get(key)
        payer = owner if charge is None else charge.owner
        return not payer or self.owned.get(payer, 0) + size <= most // 4


def no_usage() -> dict[Table, Usage]:
    """Return the usage of a state that is empty."""
    return {table: Usage() for table in Table}
