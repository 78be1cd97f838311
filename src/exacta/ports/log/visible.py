"""The offsets that readers may see: of durable state only, advanced in one step for all partitions of a group."""

from msgspec import Struct

from exacta.core.ids import Offset
from exacta.core.values.leader_epochs import LeaderEpochs


class Visible(Struct, frozen=True):
    """One partition's offsets, and its leaders' epochs, as of the last durable group."""

    log_start_offset: Offset
    high_watermark: Offset
    last_stable_offset: Offset
    leader_epochs: LeaderEpochs = ()

    def offsets(self, read_committed: bool) -> tuple[Offset, Offset]:
        """Return the first offset that a reader may see, and the one after the last."""
        return self.log_start_offset, self.last_stable_offset if read_committed else self.high_watermark
