"""Planted bugs of partitions that one writer has for itself."""

from exacta.core.apply import _APPLY
from exacta.core.events import TopicEpochMoved
from exacta.core.log import exclusive
from simulation.canaries import Replacements, canary


@canary("a writer that was replaced comes back and goes on", shows=r"epochs: .* goes on|writers: TopicEpochMoved")
def replaced_writer_goes_on() -> Replacements:
    return [(exclusive, "is_behind", lambda topic_epoch, last_epoch: False)]


@canary("an epoch is given to two writers", shows=r"epochs: .* is given .*, after|writers: TopicEpochMoved")
def topic_epoch_given_twice() -> Replacements:
    return [(_APPLY, TopicEpochMoved, lambda state, event: None)]
