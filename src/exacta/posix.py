"""The names that Python has on Linux and macOS only. Every module that needs one imports it from here.

So a module that cannot work on Windows fails when it is imported, and with a sentence that says why.
"""

import sys

try:
    import fcntl as fcntl
    import resource as resource
    from signal import SIGKILL as SIGKILL
except ImportError as error:
    raise ImportError(
        "Exacta's broker, `exacta log`, `exacta demo` and `exacta verify` run on Linux and macOS; "
        f"on {sys.platform} Python lacks what they need ({error})",
        name=__name__,
    ) from error
