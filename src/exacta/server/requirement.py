"""The packages of extras, which not everybody has."""

from exacta.server.errors import ServerError


def require(module: str, advice: str) -> None:
    """Load a module; raise ServerError with the advice where it is not there."""
    try:
        __import__(module)
    except ImportError as error:
        raise ServerError(advice) from error
