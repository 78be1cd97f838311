"""The error of a server that cannot start or go on."""


class ServerError(Exception):
    """The server cannot start or go on; the message is one line for the operator."""
