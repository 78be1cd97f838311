"""Tokens (JWT) that are checked by one key of ours, as Apache Pulsar's are: `tokenSecretKey` or `tokenPublicKey`.

The key and its algorithms are ours: an HMAC for a secret, `tokenPublicAlg` for a public key. A token that says when it
ends, or since when it holds, is held to that; one that names audiences must name ours.

It reads bytes before a login.
"""

import base64
import binascii
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote_to_bytes, urlsplit

import jwt
from cryptography.hazmat.primitives.serialization import load_der_public_key, load_pem_public_key
from msgspec import Struct

from exacta.config.pulsar_logins import PulsarLoginOptions
from exacta.ports.authorizer import Principal
from exacta.security.exchange import LoggedIn, LoginRefused
from exacta.security.tokens import Proved, TokenRefused, header_of, time_of

MOST_BYTES: Final = 64 << 10
"""The largest key that is read, and the largest token."""

_HMAC: Final = {"HS256": 32, "HS384": 48, "HS512": 64}
"""The algorithms of a secret, and how many bytes it must have for each (RFC 7518, 3.2)."""


_CHECKED_HERE: Final[jwt.types.Options] = {
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
}
"""PyJWT goes by the machine's clock, and takes a token for a later one whose issuer's clock is ahead (`iat`)."""


class KeyUnusable(Exception):
    """A key that cannot be read, or is none; the message is one line that names the option."""


class TokenKey(Struct, frozen=True):
    """The key by which tokens are checked, and the algorithms by which it may be used."""

    key: Any
    algorithms: tuple[str, ...]

    def __repr__(self) -> str:
        """Show no secret."""
        return f"TokenKey(algorithms={self.algorithms})"


def token_key(options: PulsarLoginOptions) -> TokenKey:
    """Read the key that the options name, on any thread. Raises KeyUnusable."""
    if options.tokenSecretKey:
        secret = _content("tokenSecretKey", options.tokenSecretKey)
        algorithms = tuple(name for name, least in _HMAC.items() if len(secret) >= least)
        if not algorithms:
            raise KeyUnusable(f"tokenSecretKey has {len(secret)} bytes: it must have {_HMAC['HS256']} at least")
        try:
            jwt.get_algorithm_by_name(algorithms[0]).prepare_key(secret)
        except jwt.PyJWTError as error:  # it is a public key, which others know, and could sign with
            raise KeyUnusable("tokenSecretKey is no secret: a public key belongs to tokenPublicKey") from error
        return TokenKey(secret, algorithms)
    content = _content("tokenPublicKey", options.tokenPublicKey)
    algorithm = options.tokenPublicAlg
    try:
        is_pem = content.lstrip().startswith(b"-----BEGIN")
        key = load_pem_public_key(content) if is_pem else load_der_public_key(content)
        jwt.get_algorithm_by_name(algorithm).prepare_key(key)
    except (ValueError, TypeError, jwt.PyJWTError) as error:
        raise KeyUnusable(f"tokenPublicKey is no public key for {algorithm} (tokenPublicAlg), in DER or PEM") from error
    return TokenKey(key, (algorithm,))


def _content(option: str, written: str) -> bytes:
    """Return what an address holds: `file:` names a file, and `data:` brings it along (RFC 2397)."""
    if written.startswith("data:"):
        kind, comma, text = written.removeprefix("data:").partition(",")
        try:
            found = unquote_to_bytes(text)
            if kind.endswith(";base64"):
                found = base64.b64decode(found, validate=True)
        except (binascii.Error, ValueError):
            found = b""
        if not comma or not found:
            raise KeyUnusable(f"{option} holds no data: write it as data:;base64,…")
        return found
    if not written.startswith("file:"):
        raise KeyUnusable(f"{option} must begin with file:// or data:")
    path = unquote_to_bytes(urlsplit(written).path).decode()
    try:
        with Path(path).open("rb") as file:
            found = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise KeyUnusable(f"{option}: cannot read {path}: {reason.lower()}") from error
    if not found or len(found) > MOST_BYTES:
        raise KeyUnusable(f"{option}: {path} holds {'nothing' if not found else f'more than {MOST_BYTES} bytes'}")
    return found


class SignedTokens:
    """Checks the tokens that one key has signed. `wall_ms` gives the time since 1970."""

    def __init__(self, options: PulsarLoginOptions, key: TokenKey, wall_ms: Callable[[], int]) -> None:
        self._options = options
        self._key = key
        self._wall_ms = wall_ms

    def log_in(self, token: str) -> LoggedIn:
        """Return whose token it is, and until when it holds; raises `LoginRefused`."""
        try:
            proved = self.prove(token)
        except TokenRefused as error:
            raise LoginRefused(f"its token is refused: {error}") from None
        return LoggedIn(principal=Principal(name=proved.subject), expires_ms=proved.expires_ms)

    def prove(self, token: str) -> Proved:
        """Check a token; raises `TokenRefused`."""
        if len(token) > MOST_BYTES:
            raise TokenRefused("it is too long")
        header_of(token)
        claims = self._claims(token)
        expires_s = self._check_times(claims)
        self._check_audience(claims)
        name = self._options.tokenAuthClaim
        subject = claims.get(name)
        if not isinstance(subject, str) or not subject:
            raise TokenRefused(f"it has no claim {name} that names a user (tokenAuthClaim)")
        return Proved(subject, expires_s)

    def _claims(self, token: str) -> dict[str, Any]:
        try:
            return jwt.decode(token, self._key.key, algorithms=list(self._key.algorithms), options=_CHECKED_HERE)
        except (jwt.PyJWTError, RecursionError, OverflowError) as error:
            raise TokenRefused(f"it is not taken: {error}") from None

    def _check_times(self, claims: dict[str, Any]) -> float | None:
        now_s = self._wall_ms() / 1000
        begins_s, expires_s = time_of(claims, "nbf"), time_of(claims, "exp")
        if begins_s is not None and now_s < begins_s:
            raise TokenRefused("it does not hold yet (nbf)")
        if expires_s is not None and now_s >= expires_s:
            raise TokenRefused("it has expired (exp)")
        if expires_s is None and self._options.pulsar_token_require_expiry:
            raise TokenRefused("it does not say when it ends (exp), and pulsar.token.require.expiry is true")
        return expires_s

    def _check_audience(self, claims: dict[str, Any]) -> None:
        name, wanted = self._options.tokenAudienceClaim, self._options.tokenAudience
        if name not in claims:
            if wanted:
                raise TokenRefused(f"it names no audience (its claim {name}), and tokenAudience is set")
            return
        found = claims[name]
        if not wanted:
            raise TokenRefused("it is for an audience (aud), and tokenAudience does not say which we are")
        if wanted not in (found if isinstance(found, list) else [found]):
            raise TokenRefused(f"it is for another audience than tokenAudience (its claim {name})")
