"""The packages of extras, which not everybody has."""

from exacta.extras import install_extra
from exacta.server.errors import ServerError


def require(module: str, need: str, *, extra: str) -> None:
    """Load a module that an extra brings; raise ServerError with the need and its remedy where it is not there."""
    try:
        __import__(module)
    except ImportError as error:
        raise ServerError(f"{need}: install it by {install_extra(extra)}") from error
