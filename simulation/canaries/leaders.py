"""Planted bugs of leaders' epochs."""

from typing import Any

from msgspec.structs import replace

from exacta.core import snapshot
from exacta.core.log import fold
from simulation.canaries import Replacements, canary


@canary("a leader that has written nothing keeps its place among the epochs (KAFKA-7415)", shows=r"leaders: epoch")
def empty_epochs_stay() -> Replacements:
    def all_of_them(epochs: Any, epoch: int, next_offset: int, log_start_offset: int) -> Any:
        return (*(epochs or ((0, log_start_offset),)), (epoch, next_offset))

    return [(fold, "led", all_of_them)]


@canary("a restart forgets the leader's epoch, and the next leader gets it once more", shows=r"leaders: ")
def leader_epoch_forgotten() -> Replacements:
    decoded = snapshot._decoded

    def without(blob: bytes) -> Any:
        return replace(decoded(blob), leader_epoch=0)

    return [(snapshot, "_decoded", without)]
