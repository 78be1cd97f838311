"""Tell what a damaged journal still holds, in terms of topics and transactions, and what each remedy would cost.

This module owns what `exacta log repair` offers: four remedies, whether each is possible, what it gives up, and the
batches that stand in for lost ones. It composes the local journal's survey and repair with the core's fold and Kafka's
batches.

Theory of operation. Nobody needs events before a snapshot, so damage there costs its batches alone. Behind the newest
sound snapshot an event that is lost makes all that follows worthless, since it was decided on a state that nobody knows
any more; there only a group whose table is sound, and whose payload is not, can be done without its batches. The table
has no checksum of its own: it is believed if at least one batch of the payload is damaged, all its events can be read,
they agree with the index rows, and each continues its partition where the one before ended.

The lost part becomes empty batches, as Kafka's log cleaner leaves them, so that readers pass over it and every
partition still ends where its producers were told that it ends; and markers of aborted transactions, which readers of
committed records need to tell what comes after, are rewritten.
"""

from exacta.adapters.local.damage.repair import finish, is_interrupted
from exacta.repair.examination import Examination, NotRepaired, apply_remedy, examine
from exacta.repair.known_state import is_batch
from exacta.repair.remedies import Remedy, Way

__all__ = [
    "Examination",
    "NotRepaired",
    "Remedy",
    "Way",
    "apply_remedy",
    "examine",
    "finish",
    "is_batch",
    "is_interrupted",
]
