"""A start and the access rules and users that the journal holds: what is closed does not open by a forgotten option."""

import logging
from collections.abc import Sequence
from pathlib import Path

from exacta.config.configuration import Configuration
from exacta.config.security import STANDARD_AUTHORIZER, all_super_users
from exacta.core.state.state import State
from exacta.front.doors import Door
from exacta.server.errors import ServerError
from exacta.server.first_user import needs_first_user

logger = logging.getLogger("exacta.server")


def require_authorizer(configuration: Configuration, state: State, data: Path, doors: Sequence[Door] = ()) -> None:
    """Raise ServerError where the journal holds access rules or users, and everybody might do everything.

    Users are made only where there is an authorizer: it was there, and the option is missing, with super.users.
    """
    held = (("access rules", state.acls), ("users", state.scram_keys))
    found = [f"{what} ({len(entries)})" for what, entries in held if entries]
    if found and not configuration.authorizer_class_name:
        raise ServerError(
            f"the journal in {data} holds {' and '.join(found)}, and everybody might do everything: start with "
            f"--set authorizer.class.name={STANDARD_AUTHORIZER}"
        )
    nobody = not all_super_users(configuration) and not state.acls
    if configuration.authorizer_class_name and nobody and not needs_first_user(configuration, state, doors):
        text = "there are no access rules and super.users names nobody, so that nobody may make a rule: set super.users"
        logger.warning(text)
