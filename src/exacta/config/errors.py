"""The error of a configuration."""


class ConfigurationError(Exception):
    """An option that does not exist, or a value that it cannot have; the message is one line for the user."""
