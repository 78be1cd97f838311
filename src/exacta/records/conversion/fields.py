"""Fields of Pulsar's metadata as headers of Kafka's records, and back.

Kafka has no field for them, so that each has a header of a reserved name (`names.py`). Numbers are decimal text. A
header becomes a field again only if it is written as this module writes it. Any other one stays a header of the user.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, structs

from exacta.protocol.kafka.record_writing import Header
from exacta.protocol.pulsar.messages_pb2 import MessageMetadata, SingleMessageMetadata
from exacta.records.conversion import names
from exacta.records.conversion.user_headers import headers_of, is_text

_SIGNED: Final = range(-(1 << 63), 1 << 63)
_UNSIGNED: Final = range(1 << 64)
_VERSION_BYTES: Final = 8


# --- into headers -----------------------------------------------------------------------------------------------------


def any_tag(written: bytes) -> bool:
    """Return whether a `SingleMessageMetadata` may have properties or an ordering key; if not, it surely has none.

    The bytes that are looked for begin the fields 1 and 7, each in the usual form, and in the form that is longer than
    need be.
    """
    return 0x0A in written or 0x3A in written or 0x8A in written or 0xBA in written


def message_headers(message: MessageMetadata | SingleMessageMetadata, key: bytes | None) -> list[Header]:
    """Return the headers that few messages have: those of the user, of an ordering key, and of a key that is bytes."""
    headers = headers_of(message.properties)
    if message.HasField("ordering_key"):
        headers.append((names.ORDERING_KEY, message.ordering_key))
    if key is not None and message.partition_key_b64_encoded and is_text(key):
        headers.append((names.KEY_IS_BYTES, names.TRUE))
    return headers


def entry_headers(metadata: MessageMetadata) -> list[Header]:
    """Return the headers that stand for fields of an entry; each of its messages gets them."""
    headers: list[Header] = [(names.PRODUCER_NAME, metadata.producer_name.encode())]
    if metadata.HasField("schema_version"):
        headers.append((names.SCHEMA_VERSION, _version_as_text(metadata.schema_version)))
    if metadata.HasField("schema_id"):
        headers.append((names.SCHEMA_ID, metadata.schema_id))
    if metadata.HasField("deliver_at_time"):
        headers.append((names.DELIVER_AT, b"%d" % metadata.deliver_at_time))
    if metadata.HasField("replicated_from"):
        headers.append((names.REPLICATED_FROM, metadata.replicated_from.encode()))
    headers += [(names.REPLICATE_TO, each.encode()) for each in metadata.replicate_to]
    return headers


def chunk_headers(metadata: MessageMetadata) -> list[Header]:
    """Return the headers that say which part of which message it is."""
    return [
        (names.CHUNK_UUID, metadata.uuid.encode()),
        (names.CHUNK_ID, b"%d" % metadata.chunk_id),
        (names.CHUNK_COUNT, b"%d" % metadata.num_chunks_from_msg),
        (names.CHUNK_TOTAL_SIZE, b"%d" % metadata.total_chunk_msg_size),
    ]


def _version_as_text(version: bytes) -> bytes:
    """Return a schema's version as text: a version of eight bytes as the number, any other one in hexadecimal."""
    if len(version) == _VERSION_BYTES:
        return b"%d" % int.from_bytes(version)
    return b"0x" + version.hex().encode()


# --- back into fields -------------------------------------------------------------------------------------------------


class HeaderFields(Struct, frozen=True, gc=False):
    """The headers of one record, taken apart: the fields that some of them stand for, and the user's own."""

    user: Sequence[Header]
    of_entry: tuple[Header, ...] = ()
    """The headers that stand for fields of an entry. They become fields if all messages of the entry have the same."""
    was_pulsars: bool = False
    """True if the record was a Pulsar message once. If it has no event time then, the message had none."""
    key_is_bytes: bool = False
    event_time: int = 0
    ordering_key: bytes | None = None
    sequence_id: int | None = None

    def with_entry_headers_as_user(self) -> "HeaderFields":
        """Return the fields of a record whose entry cannot have its fields: their headers stay the user's."""
        return structs.replace(self, user=(*self.user, *self.of_entry), of_entry=())


NO_FIELDS: Final = HeaderFields(())


def parse_headers(headers: Sequence[Header]) -> HeaderFields:
    """Take the headers of a record apart."""
    if not headers:
        return NO_FIELDS
    own = [header for header in headers if header[0] in names.OF_FIELDS]
    if not own:
        return HeaderFields(headers)
    repeated = _repeated(own)
    user: list[Header] = []
    of_entry: list[Header] = []
    fields: dict[str, object] = {}
    for header in headers:
        name, value = header
        if value is None or name not in names.OF_FIELDS or name in repeated:
            user.append(header)
        elif name in names.OF_ENTRIES:
            (of_entry if _is_entry_field(name, value) else user).append(header)
        else:
            field = _message_field(name, value)
            if field is None:
                user.append(header)
            else:
                fields[_FIELD_NAMES[name]] = field
    was_pulsars = any(name == names.PRODUCER_NAME for name, _ in of_entry)
    return HeaderFields(user, tuple(of_entry), was_pulsars, **fields)  # type: ignore[arg-type]


_FIELD_NAMES: Final = {
    names.KEY_IS_BYTES: "key_is_bytes",
    names.EVENT_TIME: "event_time",
    names.ORDERING_KEY: "ordering_key",
    names.SEQUENCE_ID: "sequence_id",
}


def _repeated(headers: Sequence[Header]) -> set[bytes]:
    """Return the names that came more than once, though their field has one value only."""
    seen: set[bytes] = set()
    repeated: set[bytes] = set()
    for name, _ in headers:
        (repeated if name in seen else seen).add(name)
    return repeated - {names.REPLICATE_TO}


def _message_field(name: bytes, value: bytes) -> object:
    """Return the value of a message's field; None if it is not written as this module writes it."""
    if name == names.ORDERING_KEY:
        return value
    if name == names.KEY_IS_BYTES:
        return True if value == names.TRUE else None
    number = _number(value, _UNSIGNED)
    return None if number == 0 and name == names.EVENT_TIME else number


def _is_entry_field(name: bytes, value: bytes) -> bool:
    if name == names.DELIVER_AT:
        return _number(value, _SIGNED) is not None
    if name == names.SCHEMA_VERSION:
        return _version(value) is not None
    return name == names.SCHEMA_ID or is_text(value)


def _number(text: bytes, among: range) -> int | None:
    if not text.removeprefix(b"-").isdigit() or len(text) > len(str(1 << 64)):
        return None
    number = int(text)
    return number if number in among and b"%d" % number == text else None


def _version(text: bytes) -> bytes | None:
    number = _number(text, _UNSIGNED)
    if number is not None:
        return number.to_bytes(_VERSION_BYTES)
    try:
        version = bytes.fromhex(text.removeprefix(b"0x").decode())
    except ValueError:
        return None
    return version if _version_as_text(version) == text else None


def set_entry_fields(metadata: MessageMetadata, headers: Sequence[Header]) -> None:
    """Write the fields of an entry that headers stand for (`HeaderFields.of_entry`)."""
    for name, value in headers:
        data = value or b""
        if name == names.PRODUCER_NAME:
            metadata.producer_name = data.decode()
        elif name == names.SCHEMA_VERSION:
            metadata.schema_version = _version(data) or b""
        elif name == names.SCHEMA_ID:
            metadata.schema_id = data
        elif name == names.DELIVER_AT:
            metadata.deliver_at_time = int(data)
        elif name == names.REPLICATED_FROM:
            metadata.replicated_from = data.decode()
        else:
            metadata.replicate_to.append(data.decode())
