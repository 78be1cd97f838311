"""PostgreSQL as the ledger of a log that several brokers share, and as its object store where there is no other.

It needs the extra `exacta-log[cluster]`. Nothing imports this package but what opens such a log.
"""

from exacta.adapters.postgres.ledger import PostgresLedger
from exacta.adapters.postgres.objects import PostgresObjects
from exacta.adapters.postgres.sessions import Doubt, PostgresRefused

__all__ = ["Doubt", "PostgresLedger", "PostgresObjects", "PostgresRefused"]
