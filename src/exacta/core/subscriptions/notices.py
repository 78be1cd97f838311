"""The words that consumers are told without having asked for them; each goes to the sink of a consumer's id."""

from exacta.core.outcome import Notice


class ActiveConsumerChanged(Notice, frozen=True, kw_only=True):
    """The consumer of a Failover subscription is the active one from now on, or is not."""

    is_active: bool


class ConsumerClosed(Notice, frozen=True, kw_only=True):
    """The consumer is disconnected, and may connect again.

    Its subscription was moved or deleted, or an abort gives back messages before those that it has.
    """
