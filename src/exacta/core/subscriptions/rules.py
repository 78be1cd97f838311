"""The commands to subscriptions, and what decides each; `core/decide.py` has the table of all commands."""

from collections.abc import Callable
from typing import Any

from exacta.core.commands import (
    Acknowledge,
    AcknowledgeSoon,
    Command,
    Connect,
    Deliver,
    Disconnect,
    EndDelays,
    ForgetIdleSubscription,
    Permit,
    Redeliver,
    Seek,
    Skip,
    Subscribe,
    Unsubscribe,
)
from exacta.core.outcome import Outcome
from exacta.core.state.state import State
from exacta.core.subscriptions import acknowledging, consumers, delays, delivering, durability, skipping, subscribing

RULES: dict[type[Command], Callable[[State, Any, int], Outcome]] = {
    Subscribe: subscribing.subscribe,
    Unsubscribe: subscribing.unsubscribe,
    ForgetIdleSubscription: durability.forget_idle,
    Seek: subscribing.seek,
    Skip: skipping.skip,
    Acknowledge: acknowledging.acknowledge,
    AcknowledgeSoon: acknowledging.acknowledge,
    Connect: consumers.connect,
    Disconnect: consumers.disconnect,
    Permit: consumers.permit,
    Deliver: delivering.deliver,
    Redeliver: delivering.redeliver,
    EndDelays: delays.end_delays,
}
