"""The number of files that this process may have open, sockets among them."""

import sys

from exacta.posix import resource


def files_allowed() -> int:
    """Return how many files this process may have open, sockets among them: without one, the journal cannot go on."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft
