"""The users and the access rules of an embedded broker: what a test writes, as the broker keeps it.

A rule is written as the arguments of `exacta acls add`: `"User:alice Read Write --topic orders"`. The kit has a user of
its own, who may do everything, so that the questions of a test are answered whatever the rules say.
"""

import argparse
import secrets
import shlex
from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

from exacta.client.security import Sasl
from exacta.config.pulsar_logins import BASIC, provider_of
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.core.commands import AlterScramKeys, Command, CreateAcls
from exacta.core.ids import PrincipalName
from exacta.core.values.acl import CLUSTER_NAME, Acl, Operation, Pattern, ResourceKind, problem_of
from exacta.core.values.scram import ScramAlteration, ScramMechanism
from exacta.protocol.sasl.scram import ALGORITHMS, USUAL_ITERATIONS, USUAL_SALT_BYTES, salted_password
from exacta.security.scram_keys import kept_key

KITS_OWN: Final = "exacta-testing"
"""The name of the kit's own user, and of the owner of its certificate."""
_MECHANISM: Final = ScramMechanism.SCRAM_SHA_256
_OPERATIONS: Final = {each.value.lower(): each for each in Operation}
_RESOURCES: Final = {
    "topic": ResourceKind.TOPIC,
    "group": ResourceKind.GROUP,
    "transactional_id": ResourceKind.TRANSACTIONAL_ID,
}


class Access:
    """The users of one broker, and what they may do."""

    def __init__(self, users: Mapping[str, str] | None, acls: Iterable[str] | None) -> None:
        """None: nobody logs in, or everybody may do everything. Raises ValueError for a rule that there cannot be."""
        self.has_logins = users is not None
        self._passwords = {**(users or {}), KITS_OWN: secrets.token_urlsafe()} if self.has_logins else {}
        self.acls = None if acls is None else tuple(acl for each in acls for acl in acls_of(each))

    def options(self, given: Mapping[str, object]) -> dict[str, object]:
        """Return the broker's options, with those that are given."""
        options = dict(given)
        if self.has_logins:
            options.setdefault("sasl.enabled.mechanisms", "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN")
            if not options.keys() & {"authenticationEnabled", "authenticationProviders"}:
                options |= {"authenticationEnabled": True, "authenticationProviders": provider_of(BASIC)}
        if self.has_logins or self.acls is not None:
            options.setdefault("authorizer.class.name", STANDARD_AUTHORIZER)
            if self.acls is None:
                options.setdefault("allow.everyone.if.no.acl.found", True)
            others = options.get("super.users")
            options["super.users"] = f"{others};User:{KITS_OWN}" if others else f"User:{KITS_OWN}"
        return options

    def login(self) -> Sasl | None:
        """Return the login of the kit's own client; None: nobody logs in."""
        if not self.has_logins:
            return None
        return Sasl(mechanism=_MECHANISM.sasl_name, username=KITS_OWN, password=self._passwords[KITS_OWN])

    def commands(self) -> list[Command]:
        """Return the commands that make the users, by all mechanisms, and the rules."""
        made: list[Command] = [self._user(name, each) for name in self._passwords for each in ScramMechanism]
        return [*made, CreateAcls(acls=self.acls)] if self.acls else made

    def _user(self, name: str, mechanism: ScramMechanism) -> Command:
        salt = secrets.token_bytes(USUAL_SALT_BYTES)
        algorithm = ALGORITHMS[mechanism.sasl_name]
        salted = salted_password(algorithm, self._passwords[name], salt, USUAL_ITERATIONS)
        key = kept_key(mechanism, salt, USUAL_ITERATIONS, salted)
        return AlterScramKeys(alterations=(ScramAlteration(name, mechanism, key),))


class _RuleParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise ValueError: an error of a test is no end of the process."""
        raise ValueError(message)


def _parser() -> _RuleParser:
    parser = _RuleParser(add_help=False, allow_abbrev=False)
    parser.add_argument("principal")
    parser.add_argument("operations", nargs="+")
    for name in _RESOURCES:
        parser.add_argument(f"--{name.replace('_', '-')}")
    for flag in ("cluster", "prefixed", "deny"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--host", default="*")
    return parser


def acls_of(written: str) -> list[Acl]:
    """Return the rules that a text has, one for each operation. Raises ValueError."""
    try:
        words = _parser().parse_args(shlex.split(written))
        resources = [(kind, getattr(words, name)) for name, kind in _RESOURCES.items() if getattr(words, name)]
        resources += [(ResourceKind.CLUSTER, CLUSTER_NAME)] * words.cluster
        if len(resources) != 1:
            raise ValueError("give one of --topic, --group, --transactional-id and --cluster")
        ((kind, name),) = resources
        pattern = Pattern.PREFIXED if words.prefixed else Pattern.LITERAL
        principal = PrincipalName(words.principal)
        operations = [_operation(each) for each in words.operations]
        found = [Acl(kind, name, pattern, principal, words.host, each, not words.deny) for each in operations]
        for each in found:
            if problem := problem_of(each):
                raise ValueError(problem)
    except ValueError as error:
        raise ValueError(f"{written!r} is no access rule: {error}") from error
    return found


def _operation(word: str) -> Operation:
    found = _OPERATIONS.get(word.lower())
    if found is None:
        raise ValueError(f"there is no operation {word!r}: it is one of {', '.join(each.value for each in Operation)}")
    return found
