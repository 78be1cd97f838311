"""The options that are set for brokers while they run (KIP-226): they are kept, and what they mean is the caller's."""

from exacta.core.commands import SetBrokerConfigs
from exacta.core.events import BrokerConfigsSet
from exacta.core.outcome import Outcome
from exacta.core.replies import DONE
from exacta.core.state.state import State


def set_configs(state: State, command: SetBrokerConfigs, now_ms: int) -> Outcome:
    """Replace the options that were set for a broker, or for all; do nothing if they are the same."""
    if command.validate_only or command.configs == state.broker_configs.get(command.broker_id, {}):
        return Outcome(reply=DONE)
    return Outcome(events=(BrokerConfigsSet(broker_id=command.broker_id, configs=command.configs),), reply=DONE)
