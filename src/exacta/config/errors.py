"""The one exception for a configuration that cannot be."""


class ConfigurationError(Exception):
    """An option that does not exist, or a value that it cannot have; the message is one line for the user."""
