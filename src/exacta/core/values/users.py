"""The names of users: those that a client may log in by, whatever shows them (a password, a token, a certificate).

Events and snapshots hold them, in UTF-8. A token may bring half of a surrogate pair, which is no text there.
"""

from typing import Final

LONGEST_NAME: Final = 1_024
"""The most characters of a name: each open transaction and each member of a group holds one."""
ANONYMOUS_NAME: Final = "ANONYMOUS"
"""The name of who has not logged in: what was begun without a login would belong to a user of this name."""


def problem_of(name: str) -> str | None:
    """Return why nobody may log in by a name, as the end of a sentence about it; None: it may be a user's."""
    if not name:
        return "is empty"
    if name == ANONYMOUS_NAME:
        return "stands for clients that have not logged in"
    if len(name) > LONGEST_NAME:
        return f"has more than {LONGEST_NAME:,} characters"
    return None if name.isprintable() else "cannot be shown on one line"
