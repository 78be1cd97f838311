"""AlterUserScramCredentials (key 51): set and delete the keys by which users log in by SCRAM.

KIP-554. The client sends the salted password, by which one can log in: no text shows it.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Bytes, Int8, Int16, Int32, Message, Schema, String, Structure


class ScramCredentialDeletion(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    mechanism: Annotated[int, Int8("0+")] = 0


class ScramCredentialUpsertion(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    mechanism: Annotated[int, Int8("0+")] = 0
    iterations: Annotated[int, Int32("0+")] = 0
    salt: Annotated[bytes, Bytes("0+")] = b""
    salted_password: Annotated[bytes, Bytes("0+")] = b""

    def __repr__(self) -> str:
        """Return the text without the password."""
        return f"{type(self).__name__}(name={self.name!r}, mechanism={self.mechanism}, iterations={self.iterations})"


class AlterUserScramCredentialsRequest(Message, kw_only=True):
    """Request of AlterUserScramCredentials."""

    SCHEMA: ClassVar[Schema] = Schema(key=51, versions="0", flexible="0+")

    deletions: Annotated[list[ScramCredentialDeletion], Array("0+")] = EMPTY
    upsertions: Annotated[list[ScramCredentialUpsertion], Array("0+")] = EMPTY


class AlterUserScramCredentialsResult(Structure, kw_only=True):
    user: Annotated[str, String("0+")] = ""
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None


class AlterUserScramCredentialsResponse(Message, kw_only=True):
    """Response of AlterUserScramCredentials."""

    SCHEMA: ClassVar[Schema] = Schema(key=51, versions="0", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    results: Annotated[list[AlterUserScramCredentialsResult], Array("0+")] = EMPTY
