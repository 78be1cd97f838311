"""The lead of the log: who takes it begins a new epoch in every partition, and what is written then is of it.

Where one machine has the log nobody takes the lead, and the epoch stays as in a new log. Several brokers agree outside
of the core on who leads. The one that does takes the lead by the first event that it writes, and serves nobody before
that is durable. So an epoch is given once, and no client is told one that a crash takes back.
"""

from exacta.core.commands import TakeLead
from exacta.core.events import LeadTaken
from exacta.core.outcome import Outcome
from exacta.core.replies import LeadTakenReply
from exacta.core.state.state import State


def take_lead(state: State, command: TakeLead, now_ms: int) -> Outcome:
    """Begin the next epoch, also where the same node had the last one: it may have lost the lead in between."""
    leader_epoch = state.leader_epoch + 1
    taken = LeadTaken(leader_epoch=leader_epoch, node_id=command.node_id, at_ms=now_ms)
    return Outcome(events=(taken,), reply=LeadTakenReply(leader_epoch=leader_epoch))
