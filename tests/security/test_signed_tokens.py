"""Tokens that one key of ours checks: as Apache Pulsar makes them, and as an attacker would."""

import base64
import hmac
import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from exacta.config.options import configure
from exacta.security.backoff import LoginBackoff
from exacta.security.exchange import LoginRefused
from exacta.security.logins import Logins
from exacta.security.signed_tokens import MOST_BYTES, KeyUnusable, SignedTokens, token_key
from exacta.security.tokens import TokenRefused

NOW_S = 1_900_000_000
SECRET = bytes(range(64))
RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
EC_OF_ANOTHER_CURVE = ec.generate_private_key(ec.SECP384R1())
STRANGER = rsa.generate_private_key(65537, 2048)
PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
ON = {"authenticationEnabled": True, "authenticationProviders": PROVIDER}


def public(private: Any, encoding: serialization.Encoding = serialization.Encoding.DER) -> bytes:
    found: bytes = private.public_key().public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)
    return found


def data(content: bytes) -> str:
    return "data:;base64," + base64.b64encode(content).decode()


BY_SECRET = {"tokenSecretKey": data(SECRET)}
BY_RSA = {"tokenPublicKey": data(public(RSA))}
BY_EC = {"tokenPublicKey": data(public(EC)), "tokenPublicAlg": "ES256"}


def tokens(options: dict[str, Any] = BY_SECRET, **more: Any) -> SignedTokens:
    configuration = configure({**ON, **options, **more})
    return SignedTokens(configuration, token_key(configuration), lambda: NOW_S * 1000)


def token(key: Any = SECRET, algorithm: str = "HS256", headers: dict[str, Any] | None = None, **changed: Any) -> str:
    claims = {"sub": "alice", "exp": NOW_S + 600, **changed}
    return jwt.encode({k: v for k, v in claims.items() if v is not None}, key, algorithm, headers=headers)


@pytest.mark.parametrize(
    ("options", "key", "algorithm"),
    [
        (BY_SECRET, SECRET, "HS256"),
        (BY_SECRET, SECRET, "HS512"),
        ({"tokenSecretKey": data(SECRET[:32])}, SECRET[:32], "HS256"),
        (BY_RSA, RSA, "RS256"),
        ({**BY_RSA, "tokenPublicAlg": "PS512"}, RSA, "PS512"),
        ({"tokenPublicKey": data(public(RSA, serialization.Encoding.PEM))}, RSA, "RS256"),
        (BY_EC, EC, "ES256"),
    ],
)
def test_a_token_of_each_kind_of_key(options: dict[str, Any], key: Any, algorithm: str) -> None:
    proved = tokens(options).prove(token(key, algorithm))
    assert (proved.subject, proved.expires_s) == ("alice", NOW_S + 600)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"exp": None}, "pulsar.token.require.expiry"),
        ({"exp": NOW_S}, "expired"),
        ({"exp": "soon"}, "exp is no time"),
        ({"exp": True}, "exp is no time"),
        ({"exp": float("inf")}, "exp is no time"),
        ({"exp": float("nan")}, "exp is no time"),
        ({"nbf": NOW_S + 1}, "not hold yet"),
        ({"nbf": 10**400}, "not hold yet"),
        ({"sub": None}, "sub"),
        ({"sub": ""}, "sub"),
        ({"sub": 7}, "not taken|sub"),
        ({"sub": ["alice"]}, "not taken|sub"),
        ({"aud": "another"}, "tokenAudience"),
        ({"aud": []}, "tokenAudience"),
    ],
    ids=str,
)
def test_every_claim_is_checked_where_it_is_present(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(TokenRefused, match=reason):
        tokens().prove(token(**changed))


def test_a_token_without_an_end_is_taken_where_the_option_says_so() -> None:
    found = tokens({**BY_SECRET, "pulsar.token.require.expiry": False}).log_in(token(exp=None))
    assert (str(found.principal), found.expires_ms) == ("User:alice", None)


def test_the_clock_of_the_issuer_may_be_ahead() -> None:
    assert tokens().prove(token(iat=NOW_S + 60)).subject == "alice"


@pytest.mark.parametrize(
    ("audience", "is_taken"),
    [
        ("exacta", True),
        (["another", "exacta"], True),
        ("another", False),
        (["exacta.evil"], False),
        ({"exacta": 1}, False),
        (None, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("claim", ["aud", "audiences"])
def test_an_audience_that_is_ours_must_be_named(audience: Any, is_taken: bool, claim: str) -> None:
    at = tokens({**BY_SECRET, "tokenAudience": "exacta", "tokenAudienceClaim": claim})
    written = token(**{claim: audience})
    if is_taken:
        assert at.prove(written).subject == "alice"
    else:
        with pytest.raises(TokenRefused, match="tokenAudience"):
            at.prove(written)


def test_another_claim_names_the_user() -> None:
    assert tokens({**BY_SECRET, "tokenAuthClaim": "role"}).prove(token(sub=None, role="bob")).subject == "bob"
    with pytest.raises(TokenRefused, match="role"):
        tokens({**BY_SECRET, "tokenAuthClaim": "role"}).prove(token())


def part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


CLAIMS = {"sub": "root", "exp": NOW_S + 600}


def hmac_by(secret: bytes, hashed: str = "sha256") -> str:
    """Return a token whose signature is an HMAC; with a public key it is the oldest confusion of algorithms."""
    signed = f"{part({'alg': hashed.replace('sha', 'HS'), 'typ': 'JWT'})}.{part(CLAIMS)}"
    signature = hmac.digest(secret, signed.encode(), hashed)
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


ATTACKS = {
    "none": (BY_SECRET, f"{part({'alg': 'none'})}.{part(CLAIMS)}."),
    "none, at a public key": (BY_RSA, f"{part({'alg': 'none'})}.{part(CLAIMS)}."),
    "no algorithm": (BY_SECRET, f"{part({})}.{part(CLAIMS)}."),
    "hmac with the public key": (BY_RSA, hmac_by(public(RSA))),
    "hmac with nothing": (BY_RSA, f"{part({'alg': 'HS256'})}.{part(CLAIMS)}."),
    "another hash than tokenPublicAlg's": (BY_RSA, token(RSA, "RS512")),
    "another padding than tokenPublicAlg's": (BY_RSA, token(RSA, "PS256")),
    "a secret too short for the algorithm": ({"tokenSecretKey": data(SECRET[:32])}, hmac_by(SECRET[:32], "sha512")),
    "a stranger's key": (BY_RSA, token(STRANGER, "RS256")),
    "a stranger's address": (BY_RSA, token(STRANGER, "RS256", headers={"jku": "https://evil.example/keys"})),
    "a stranger's secret": (BY_SECRET, token(SECRET[::-1])),
    "crit": (BY_SECRET, token(headers={"crit": ["exp"]})),
    "no signature": (BY_SECRET, token().rpartition(".")[0] + "."),
    "changed claims": (BY_SECRET, ".".join((token().split(".")[0], part(CLAIMS), token().split(".")[2]))),
    "nothing": (BY_SECRET, ""),
    "two dots": (BY_SECRET, ".."),
    "no text of ASCII": (BY_SECRET, "ü.ü.ü"),
    "a half of a character": (BY_SECRET, "\udc80.a.b"),
    "deep": (BY_SECRET, base64.urlsafe_b64encode(b"[" * 20_000).decode() + ".a.b"),
    "long": (BY_SECRET, "a" * (MOST_BYTES + 1)),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attacker_gets_nowhere(attack: str) -> None:
    options, written = ATTACKS[attack]
    with pytest.raises(TokenRefused) as refused:
        tokens(options).prove(written)
    assert len(written) < 10 or written not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tokenSecretKey": data(b"short")}, "tokenSecretKey has 5 bytes"),
        ({"tokenSecretKey": data(public(RSA, serialization.Encoding.PEM))}, "belongs to tokenPublicKey"),
        ({"tokenSecretKey": "secret"}, "must begin with file:// or data:"),
        ({"tokenSecretKey": "data:;base64,???"}, "holds no data"),
        ({"tokenSecretKey": "data:"}, "holds no data"),
        ({"tokenSecretKey": "file:///no/such/file"}, "cannot read /no/such/file"),
        ({"tokenPublicKey": data(SECRET)}, "no public key for RS256"),
        ({"tokenPublicKey": data(public(EC))}, "no public key for RS256"),
        ({"tokenPublicKey": data(public(RSA)), "tokenPublicAlg": "ES256"}, "no public key for ES256"),
        ({"tokenPublicKey": data(public(EC_OF_ANOTHER_CURVE)), "tokenPublicAlg": "ES256"}, "no public key for ES256"),
    ],
)
def test_a_key_that_is_none_is_an_error_that_names_its_option(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(KeyUnusable, match=sentence) as error:
        token_key(configure({**ON, **options}))
    assert "secret" not in str(error.value).replace("tokenSecretKey", "").replace("no secret", "")


def test_keys_lie_in_files(tmp_path: Path) -> None:
    path = tmp_path / "a key"
    path.write_bytes(SECRET)
    key = token_key(configure({**ON, "tokenSecretKey": path.as_uri()}))
    assert (key.key, key.algorithms) == (SECRET, ("HS256", "HS384", "HS512"))
    assert repr(SECRET)[2:-1] not in repr(key)
    for content, sentence in ((b"", "holds nothing"), (bytes(MOST_BYTES + 1), "more than")):
        path.write_bytes(content)
        with pytest.raises(KeyUnusable, match=sentence):
            token_key(configure({**ON, "tokenSecretKey": path.as_uri()}))


def test_a_login_by_token() -> None:
    def outcome(at: Logins, written: str) -> Any:
        try:
            next(at.by_token(written))
        except StopIteration as end:
            return end.value.principal.name
        except LoginRefused as refused:
            return str(refused)
        raise AssertionError("a token needs no thread")

    def at(**more: Any) -> Logins:
        return Logins(
            (), LoginBackoff(0.1, lambda: 0.0), keys_of=lambda *_: None, secret=b"", wall_ms=lambda: 0, **more
        )

    assert outcome(at(prove=tokens().log_in), token()) == "alice"
    assert "expired" in outcome(at(prove=tokens().log_in), token(exp=NOW_S - 1))
    assert outcome(at(), token()) == "tokens are not offered"


@pytest.mark.parametrize("exp", [1e308, 10**400], ids=["float", "int"])
def test_a_token_may_end_later_than_any_clock_counts(exp: float) -> None:
    assert tokens().log_in(token(exp=exp)).expires_ms == 253_402_300_800_000


@pytest.mark.parametrize("name", ["\ud800", "a\nb", "ANONYMOUS", "a" * 1_025], ids=ascii)
def test_nobody_logs_in_by_a_name_that_may_be_nobodys(name: str) -> None:
    with pytest.raises(LoginRefused, match="its name "):
        tokens().log_in(token(sub=name))
