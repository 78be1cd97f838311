"""The exchange of OAUTHBEARER: a token instead of a password (RFC 7628, KIP-255, KIP-768)."""

from exacta.ports.authorizer import Principal
from exacta.protocol.sasl import bearer
from exacta.security.exchange import Exchange, LoggedIn, LoginRefused
from exacta.security.tokens import TokenRefused, Tokens


def bearer_login(tokens: Tokens) -> Exchange:
    """Return one login by a token. It asks a thread for the keys where they are old, or do not have the token's."""
    keys, user = tokens.keys, ""
    try:
        token, user = bearer.parse((yield b""))
        if keys.should_renew(tokens.key_id(token)):
            failed = yield keys.renew
            if failed is not None:
                raise failed
        proved = tokens.prove(token)
        if user not in ("", proved.subject):
            raise TokenRefused("it asks to act for another user")
    except (bearer.BearerError, TokenRefused) as error:
        yield bearer.REFUSED  # the client must acknowledge it
        raise LoginRefused(f"its token is refused: {error}", user) from None
    return LoggedIn(
        principal=Principal(name=proved.subject),
        expires_ms=proved.expires_ms,
        holds=lambda: proved.key is not None and keys.has(proved.key),
    )
