"""SaslAuthenticate (key 36): carry SASL bytes.

KIP-152; KIP-368 session lifetime.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import Bytes, Int16, Int64, Message, Schema, String


class SaslAuthenticateRequest(Message, kw_only=True):
    """Request of SaslAuthenticate."""

    SCHEMA: ClassVar[Schema] = Schema(key=36, versions="0-2", flexible="2+")

    auth_bytes: Annotated[bytes, Bytes("0+")] = b""


class SaslAuthenticateResponse(Message, kw_only=True):
    """Response of SaslAuthenticate."""

    SCHEMA: ClassVar[Schema] = Schema(key=36, versions="0-2", flexible="2+")

    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    auth_bytes: Annotated[bytes, Bytes("0+")] = b""
    session_lifetime_ms: Annotated[int, Int64("1+")] = 0
