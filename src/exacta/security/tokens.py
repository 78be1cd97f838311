"""Tokens (JWT, RFC 7519): who has signed one, for whom, and until when it holds (RFC 8725's advice throughout).

The key and its algorithms are ours. A token's header may name a key of ours and choose among that key's algorithms. The
keys, addresses and certificates that a header brings are not looked at, and one with `crit` is refused.

It reads bytes before a login.
"""

import math
from typing import Any, Final

import jwt
from msgspec import Struct

from exacta.security.token_keys import Key, KeySet

LATEST_S: Final = 253_402_300_800.0
"""The end of the year 9999: a later time is no nearer to us, and its milliseconds may be no number."""


class TokenRefused(Exception):
    """The token is not taken; the message is one sentence, without the token."""


class TokenRules(Struct, frozen=True, kw_only=True):
    """The claims that a token must have."""

    audiences: tuple[str, ...]
    issuer: str
    subject_claim: str = "sub"
    skew_s: float = 30.0


class Proved(Struct, frozen=True):
    """The facts of a token that is taken."""

    subject: str
    expires_s: float | None
    """The time at which it holds no more, in seconds since 1970; None: it does not say one."""
    key: Key | None = None
    """The key of a key set by which it is signed."""

    @property
    def expires_ms(self) -> int | None:
        """The same in milliseconds."""
        return None if self.expires_s is None else int(self.expires_s * 1000)


def header_of(token: str) -> dict[str, Any]:
    """Return the header of a token, which nobody has signed yet. Raises `TokenRefused`."""
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, RecursionError, UnicodeEncodeError) as error:  # PyJWT lets deep JSON and half characters by
        raise TokenRefused(f"it is malformed: {error}") from None
    if "crit" in header:
        raise TokenRefused("its header has `crit`")
    return header


def time_of(claims: dict[str, Any], name: str) -> float | None:
    """Return the time that a claim says, in seconds since 1970; None: there is no such claim. Raises `TokenRefused`."""
    if name not in claims:
        return None
    found = claims[name]
    is_number = isinstance(found, int) and not isinstance(found, bool)
    if not is_number and not (isinstance(found, float) and math.isfinite(found)):
        raise TokenRefused(f"its claim {name} is no time")
    return float(max(-LATEST_S, min(found, LATEST_S)))


class Tokens:
    """Checks the tokens of one issuer."""

    def __init__(self, rules: TokenRules, keys: KeySet) -> None:
        self.keys = keys
        self._rules = rules

    def key_id(self, token: str) -> str | None:
        """Return the id of the key that a token names; None: it names none. Raises `TokenRefused`."""
        key_id = header_of(token).get("kid")
        if key_id is not None and not isinstance(key_id, str):
            raise TokenRefused("its key id is malformed")
        return key_id

    def prove(self, token: str) -> Proved:
        """Check a token; raises `TokenRefused`."""
        key = self.keys.find(self.key_id(token))
        if key is None:
            raise TokenRefused("its key is not known")
        claims = self._claims(token, key)
        subject = claims.get(self._rules.subject_claim)
        if not isinstance(subject, str) or not subject:
            raise TokenRefused(f"it has no claim {self._rules.subject_claim}")
        expires_s = time_of(claims, "exp")
        assert expires_s is not None  # it is required
        # What is taken within the skew after its end holds until that is over; else its session would end at once.
        return Proved(subject, expires_s + self._rules.skew_s, key)

    def _claims(self, token: str, key: Key) -> dict[str, Any]:
        try:
            return jwt.decode(
                token,
                key.key.key,
                algorithms=list(key.algorithms),
                audience=self._rules.audiences,
                issuer=self._rules.issuer,
                leeway=self._rules.skew_s,
                options={"require": ["exp", "aud", "iss"]},
            )
        except (jwt.PyJWTError, RecursionError, OverflowError) as error:  # an infinite `exp` overflows
            raise TokenRefused(f"it is not taken: {error}") from None
