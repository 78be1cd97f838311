"""The logins of a server, made from its options, and the secret from which unknown users get their keys."""

import logging
import secrets
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from exacta.config.configuration import Configuration
from exacta.config.pulsar_logins import BASIC, TOKEN, methods
from exacta.core.values.scram import ScramMechanism
from exacta.front.doors import Door, TransportSecurity
from exacta.ports.log import Advice
from exacta.protocol.sasl.scram import ScramKeys
from exacta.security.backoff import LoginBackoff
from exacta.security.exchange import Exchange, LoggedIn
from exacta.security.first_user import FirstUserToken
from exacta.security.logins import MECHANISMS, OAUTHBEARER, PLAIN, Logins
from exacta.security.scram_keys import shown_keys
from exacta.server.errors import ServerError
from exacta.server.identity import keep
from exacta.server.requirement import require

if TYPE_CHECKING:
    from exacta.security.token_keys import KeySet

logger = logging.getLogger("exacta.server")

SECRET_FILE: Final = "login.secret"
_SECRET_BYTES: Final = 32
Bearer: TypeAlias = Callable[[], Exchange]
MakeProve: TypeAlias = Callable[[Callable[[], int]], Callable[[str], LoggedIn]]
_FRONTS_WITHOUT_SASL: Final = frozenset({"pulsar", "web"})
"""The fronts whose clients log in by `authenticationProviders`, where `authenticationEnabled` says so."""
_OPTION: Final = "sasl_enabled_mechanisms"
_SCRAM: Final = {each.sasl_name: each for each in ScramMechanism}


def mechanisms_of(configuration: Configuration, doors: Sequence[Door] = ()) -> tuple[str, ...]:
    """Return the mechanisms that are offered, at one of these doors at least, in the operator's order.

    Without doors these are those that no listener has for itself. Raises ServerError.
    """
    texts = [str(each.options.get(_OPTION, configuration.sasl_enabled_mechanisms)) for each in doors]
    named = [each.strip() for text in texts or [configuration.sasl_enabled_mechanisms] for each in text.split(",")]
    for each in named:
        if each not in MECHANISMS:
            raise ServerError(
                f"sasl.enabled.mechanisms: there is no {each!r} here: name some of {', '.join(MECHANISMS)}"
            )
    return tuple(dict.fromkeys(named))


def of_sasl(doors: Sequence[Door]) -> list[Door]:
    """Return the doors whose clients log in by SASL."""
    return [each for each in doors if each.login and each.front not in _FRONTS_WITHOUT_SASL]


def with_login(door: Door, configuration: Configuration) -> Door:
    """Return a door as the options want it: Pulsar and HTTP clients log in where `authenticationEnabled` says so.

    A door whose clients log in by SASL has the mechanisms that it offers among its options.
    """
    if door.front in _FRONTS_WITHOUT_SASL:
        return replace(door, login=True) if configuration.authenticationEnabled else door
    if not door.login:
        return door
    return replace(door, options={_OPTION: configuration.sasl_enabled_mechanisms, **door.options})


def check_logins(doors: Sequence[Door], configuration: Configuration) -> None:
    """Raise ServerError where a door has logins that cannot be, before anything else is done."""
    closed = [each for each in doors if each.login]
    if any(each.front in _FRONTS_WITHOUT_SASL for each in closed) and TOKEN in methods(configuration):
        require("jwt", "tokens need PyJWT", extra="oauth")
    by_sasl = of_sasl(doors)
    if not by_sasl or OAUTHBEARER not in mechanisms_of(configuration, by_sasl):
        return
    require("jwt", "tokens (OAUTHBEARER) need PyJWT", extra="oauth")
    for name in ("jwks.endpoint.url", "expected.issuer", "expected.audience"):
        if not getattr(configuration, f"sasl_oauthbearer_{name.replace('.', '_')}").strip(" ,"):
            raise ServerError(f"sasl.oauthbearer.{name} must be set: tokens (OAUTHBEARER) are checked by it")
    address = configuration.sasl_oauthbearer_jwks_endpoint_url
    if urlsplit(address).scheme not in ("https", "file"):
        raise ServerError(f"sasl.oauthbearer.jwks.endpoint.url must begin with https:// or file://, not {address!r}")


def check_keys(doors: Sequence[Door], configuration: Configuration) -> None:
    """Raise ServerError where a file of keys cannot be read; an https address is not asked."""
    prove_of(configuration)
    is_file = urlsplit(configuration.sasl_oauthbearer_jwks_endpoint_url).scheme == "file"
    if is_file and OAUTHBEARER in mechanisms_of(configuration, of_sasl(doors)):
        bearer_of(configuration)


def clear_text(door: Door, configuration: Configuration) -> str | None:
    """Return the mechanism by which a password or a token passes a door unencrypted; None: there is none."""
    if not door.login or door.security is TransportSecurity.TLS:
        return None
    if door.front in _FRONTS_WITHOUT_SASL:
        return next(iter(sorted(methods(configuration) & {TOKEN, BASIC})), None)
    return next((each for each in mechanisms_of(configuration, [door]) if each in (PLAIN, OAUTHBEARER)), None)


class ReadForLogins(Struct, frozen=True):
    """The secret and the keys that logins need: they are read with the log, on any thread."""

    secret: bytes
    bearer: Bearer | None
    mechanisms: tuple[str, ...]
    """The mechanisms of SASL that are offered at any door."""
    token_keys: "KeySet | None"
    """The keys of tokens of OAUTHBEARER; None: nobody logs in by them."""
    prove: MakeProve | None

    def __repr__(self) -> str:
        """Show no secret."""
        return "ReadForLogins()"


def read_for_logins(configuration: Configuration, secret: bytes, doors: Sequence[Door]) -> ReadForLogins:
    """Read it for these doors. Raises ServerError."""
    mechanisms = mechanisms_of(configuration, of_sasl(doors))
    bearer, token_keys = bearer_of(configuration) if OAUTHBEARER in mechanisms else (None, None)
    return ReadForLogins(secret, bearer, mechanisms, token_keys, prove_of(configuration))


def logins_of(
    read: ReadForLogins,
    configuration: Configuration,
    advice: Advice,
    wall_ms: Callable[[], int],
    first_user: FirstUserToken | None = None,
) -> Logins:
    """Return the logins of a server."""
    return Logins(
        read.mechanisms,
        LoginBackoff(configuration.connection_failed_authentication_delay_ms / 1000, time.monotonic),
        keys_of=partial(_keys_of, advice),
        secret=read.secret,
        session_ms=configuration.connections_max_reauth_ms,
        wall_ms=wall_ms,
        bearer=read.bearer,
        first_user=first_user,
        methods=methods(configuration),
        prove=None if read.prove is None else read.prove(wall_ms),
    )


def _keys_of(advice: Advice, user: str, mechanism: str) -> ScramKeys | None:
    kept = advice.scram_key(user, _SCRAM[mechanism])
    return None if kept is None else shown_keys(kept)


def bearer_of(configuration: Configuration) -> "tuple[Bearer, KeySet]":
    """Return what begins a login by a token, and the keys of tokens, read, on any thread.

    So clients that come again after a restart are not refused while the keys are on their way. Raises ServerError.
    """
    from exacta.security.bearer_login import bearer_login  # loads PyJWT
    from exacta.security.token_keys import KeySet, KeysUnavailable
    from exacta.security.tokens import TokenRules, Tokens

    rules = TokenRules(
        audiences=tuple(each.strip() for each in configuration.sasl_oauthbearer_expected_audience.split(",")),
        issuer=configuration.sasl_oauthbearer_expected_issuer,
        subject_claim=configuration.sasl_oauthbearer_sub_claim_name,
        skew_s=configuration.sasl_oauthbearer_clock_skew_seconds,
    )
    refresh_s = configuration.sasl_oauthbearer_jwks_endpoint_refresh_ms / 1000
    keys = KeySet(configuration.sasl_oauthbearer_jwks_endpoint_url, refresh_s, time.monotonic)
    try:
        keys.load()
    except KeysUnavailable as error:
        if keys.address.startswith("file:"):  # it was misspelt; an address that is away for now may come back
            raise ServerError(f"sasl.oauthbearer.jwks.endpoint.url: {error}") from error
        logger.warning("nobody can log in by a token yet: %s", error)
    return partial(bearer_login, Tokens(rules, keys)), keys


def prove_of(configuration: Configuration) -> MakeProve | None:
    """Return what makes the check of tokens that have no SASL, with their key read; None: they are not offered.

    Raises ServerError.
    """
    if TOKEN not in methods(configuration):
        return None
    from exacta.security.signed_tokens import KeyUnusable, SignedTokens, token_key  # loads PyJWT

    try:
        key = token_key(configuration)
    except KeyUnusable as error:
        raise ServerError(str(error)) from error
    return lambda wall_ms: SignedTokens(configuration, key, wall_ms).log_in


def login_secret(path: Path) -> bytes:
    """Read the secret from which unknown users get their keys, or make one and keep it. Raises ServerError."""
    if not path.exists():
        keep(path, secrets.token_bytes(_SECRET_BYTES))
    found = path.read_bytes()
    if len(found) != _SECRET_BYTES:
        raise ServerError(f"{path} was not written by Exacta: remove it, and the next start makes another")
    return found
