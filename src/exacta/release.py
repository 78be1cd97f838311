"""The version that runs, as its package says it."""

from importlib.metadata import PackageNotFoundError, version

UNKNOWN = "unknown"


def release() -> str:
    """Return the version; `UNKNOWN` where the code runs without having been installed."""
    try:
        return version("exacta-log")
    except PackageNotFoundError:
        return UNKNOWN
