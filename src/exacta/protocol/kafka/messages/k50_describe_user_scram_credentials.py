"""DescribeUserScramCredentials (key 50): list the users that can log in by SCRAM.

KIP-554.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int8, Int16, Int32, Message, Schema, String, Structure


class UserName(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""


class DescribeUserScramCredentialsRequest(Message, kw_only=True):
    """Request of DescribeUserScramCredentials."""

    SCHEMA: ClassVar[Schema] = Schema(key=50, versions="0", flexible="0+")

    users: Annotated[list[UserName] | None, Array("0+", nullable="0+")] = EMPTY


class CredentialInfo(Structure, kw_only=True):
    mechanism: Annotated[int, Int8("0+")] = 0
    iterations: Annotated[int, Int32("0+")] = 0


class DescribeUserScramCredentialsResult(Structure, kw_only=True):
    user: Annotated[str, String("0+")] = ""
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    credential_infos: Annotated[list[CredentialInfo], Array("0+")] = EMPTY


class DescribeUserScramCredentialsResponse(Message, kw_only=True):
    """Response of DescribeUserScramCredentials."""

    SCHEMA: ClassVar[Schema] = Schema(key=50, versions="0", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    results: Annotated[list[DescribeUserScramCredentialsResult], Array("0+")] = EMPTY
