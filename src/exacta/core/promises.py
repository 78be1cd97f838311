"""The promises that answers make: each command says what its client may rely on once it is answered.

A promise says what must outlive a crash. The engine concludes from it how long the answer waits for the disk
(`exacta.engine.answers_ahead`). The promises are numbered, so that a look-up by one costs little.
"""

from enum import IntEnum


class Promise(IntEnum):
    """The promise that the answer to a command makes to its client, over any crash."""

    STATE = 0
    """The answer holds for good: what it says exists is there, and no epoch or generation in it is given out again."""
    WRITE = 1
    """The records or offsets are stored. In an open transaction this promises only that its end will tell (0016)."""
    REGISTRATION = 2
    """The next request of the transaction is accepted; the core makes up for a registration that is lost (0002)."""
    END = 3
    """The transaction has ended as the answer says, with all that was written into it."""
    NOTHING = 4
    """Nothing outlives a restart."""
    NEW_ID = 5
    """The ids in the answer are given to nobody else. What they name may be forgotten, and then cannot be ended."""
    SOON = 6
    """Nothing yet, and nobody waits: what was asked for is written at once, and synced soon after."""
    INSIDE = 7
    """Nothing outlives a restart, and no client hears the answer."""
