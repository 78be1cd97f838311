"""SaslHandshake (key 17): choose a SASL mechanism.

KIP-43.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int16, Message, Schema, String


class SaslHandshakeRequest(Message, kw_only=True):
    """Request of SaslHandshake."""

    SCHEMA: ClassVar[Schema] = Schema(key=17, versions="0-1")

    mechanism: Annotated[str, String("0+")] = ""


class SaslHandshakeResponse(Message, kw_only=True):
    """Response of SaslHandshake."""

    SCHEMA: ClassVar[Schema] = Schema(key=17, versions="0-1")

    error_code: Annotated[int, Int16("0+")] = 0
    mechanisms: Annotated[list[str], Array("0+", of=String)] = EMPTY
