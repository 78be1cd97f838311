"""A start and the options that were set at run time, which count before those that the start was given.

It tells them, or drops them where the operator asks for it: no value can be set that a start does not get rid of.
"""

import logging

from exacta.config.configuration import Configuration
from exacta.config.dynamic import BrokerConfigs, in_force, possible_value
from exacta.config.errors import ConfigurationError
from exacta.config.options import require_order
from exacta.core.commands import SetBrokerConfigs
from exacta.engine.event_lines import tell_of_broker_configs
from exacta.ports.log import Log

logger = logging.getLogger("exacta.server")


def tell_of_options_set_at_run_time(started_with: Configuration, configs: BrokerConfigs) -> None:
    """Tell which options are set, which of them mean nothing here, and whether they go with those of this start."""
    for broker_id, options in configs.items():
        tell_of_broker_configs(broker_id, dict(options))
        for name, value in options.items():
            if possible_value(name, value) is None:
                text = "%(name)s=%(value)s was set at run time, and is no value of an option here: it is passed over"
                logger.warning(text, {"name": name, "value": value})
    try:
        require_order(in_force(started_with, configs))
    except ConfigurationError as wrong:
        text = (
            "what was set at run time does not go with the options of this start: %(why)s. exacta config set changes "
            "it, and exacta serve --drop-run-time-options drops it"
        )
        logger.warning(text, {"why": str(wrong)})


def drop_options_set_at_run_time(engine: Log) -> None:
    """Take back what was set at run time for all brokers and for each; the log tells once that is durable."""
    commands = [SetBrokerConfigs(broker_id=each, configs={}) for each in engine.advice.broker_configs()]
    engine.submit(commands, lambda _: None)
