"""The broker's options for access rules: whether they are asked, who needs none, and what holds where there is none.

They are Kafka's (KIP-11, KIP-801). None of them can be set while the broker runs. An option that is given and empty is
an error (`options.configure`): an administrator who writes it means something by it.
"""

from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import Meta

from exacta.config.errors import ConfigurationError

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""The one class that `authorizer.class.name` can name; what it does is done here without it."""


@dataclass(frozen=True, kw_only=True)
class SecurityOptions:
    """The options for access rules, each with its default."""

    authorizer_class_name: Annotated[
        str,
        Meta(
            description=f"The name {STANDARD_AUTHORIZER} turns access rules on: nobody may do anything but by a rule, "
            "or as a super user. Empty: everybody may do everything.",
        ),
    ] = ""
    super_users: Annotated[
        str, Meta(description="Principals that may do everything, whatever the rules say, as User:alice;User:bob.")
    ] = ""
    superUserRoles: Annotated[
        str,
        Meta(description="Pulsar's name for super.users, as alice,bob. Who is named by either may do everything."),
    ] = ""
    allow_everyone_if_no_acl_found: Annotated[
        bool, Meta(description="Whether everybody may use a resource for which nobody has written an access rule.")
    ] = False


def super_users(text: str) -> frozenset[str]:
    """Return the principals that `super.users` names. Raises ConfigurationError.

    Each is a user: every login makes one, so that another kind of principal would be nobody.
    """
    found = [each.strip() for each in text.split(";")] if text else []
    for each in found:
        kind, _, name = each.partition(":")
        if kind != "User" or not name or ",User:" in name:
            raise ConfigurationError(f"super.users names {each!r}, which is no user: write it like User:alice;User:bob")
    return frozenset(found)


def all_super_users(options: SecurityOptions) -> frozenset[str]:
    """Return the principals that `super.users` and `superUserRoles` name. Raises ConfigurationError."""
    roles = options.superUserRoles.split(",")
    return super_users(options.super_users) | {f"User:{each.strip()}" for each in roles if each.strip()}


def require_security(options: SecurityOptions) -> None:
    """Check what the options say together. Raises ConfigurationError."""
    name = options.authorizer_class_name
    if name not in ("", STANDARD_AUTHORIZER):
        raise ConfigurationError(
            f"authorizer.class.name cannot be {name!r}: it is {STANDARD_AUTHORIZER}, or is left out"
        )
    super_users(options.super_users)
    for given, option in (
        (options.super_users, "super.users"),
        (options.superUserRoles, "superUserRoles"),
        (options.allow_everyone_if_no_acl_found, "allow.everyone.if.no.acl.found"),
    ):
        if given and not name:
            raise ConfigurationError(
                f"{option} means nothing while everybody may do everything: set authorizer.class.name to "
                f"{STANDARD_AUTHORIZER}, or leave it out"
            )
