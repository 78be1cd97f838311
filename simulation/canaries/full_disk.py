"""Planted bugs of the full disk and its reserve (decision 0051)."""

from exacta.adapters.local.space.reserve import Reserve
from exacta.core import admission, commands
from exacta.core.command import Command
from exacta.core.log import full_disk
from exacta.core.outcome import Outcome
from exacta.core.state.disk_room import DiskRoom
from exacta.core.state.state import State
from exacta.engine import disk_room
from simulation.canaries import Replacements, canary


@canary("a full disk takes records, and the reserve goes for them", shows=r"13: AppendBatch of .* is taken")
def batches_taken_on_a_full_disk() -> Replacements:
    refusal = full_disk.refusal

    def batches_pass(state: State, room: DiskRoom, command: Command, outcome: Outcome) -> object:
        return None if isinstance(command, commands.AppendBatch) else refusal(state, room, command, outcome)

    return [(full_disk, "refusal", batches_pass)]


@canary(
    "a transaction cannot end on a full disk, so that what it holds is never freed",
    shows=r"13: End\w+ is refused on a full disk",
)
def ends_refused_on_a_full_disk() -> Replacements:
    refused = admission.Admission(admission.OnFullDisk.PROGRESS)
    ends = (commands.EndTransaction, commands.EndTransactions, commands.EndHandle)
    return [(admission.ADMISSION, each, refused) for each in ends]


@canary(
    "a deletion is refused on a full disk, so that nobody can make room", shows=r"13: Delete\w+ is refused on a full"
)
def deletions_refused_on_a_full_disk() -> Replacements:
    refused = admission.Admission(admission.OnFullDisk.PROGRESS)
    return [(admission.ADMISSION, each, refused) for each in (commands.DeleteTopic, commands.DeleteRecords)]


@canary(
    "a smaller batch finds the room that the one before it has not found, and overtakes it",
    shows=r"13: AppendBatch.* overtakes one that was refused",
)
def smaller_batch_overtakes() -> Replacements:
    return [(disk_room.RoomWatch, "refused", lambda self, size: None)]


@canary(
    "a write that meets a full disk ends the broker, although the reserve could give what it needs",
    shows=r"13: the broker ends, and its reserve holds",
)
def reserve_never_given() -> Replacements:
    return [(Reserve, "give", lambda self, size: False)]
