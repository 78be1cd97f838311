"""The name of the owner of a certificate, as Java writes it, which Kafka's mapping rules are written for.

This module owns the reading of the subject out of a certificate in DER, and its form by RFC 2253 as
`X500Principal.getName()` has it: the last part comes first, what is not in RFC 2253's table of keywords is `#` and its
bytes, and what has a meaning in the form is escaped. Only certificates are read that TLS has verified.

Python's ssl gives the parts without the types of their texts, which this form needs for parts without a keyword.

It reads bytes before a login.
"""

from collections.abc import Iterator

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_TEXTS = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString. Java reads all of them as UTF-8."""
_BMP_TEXT = 0x1E
_VERSION = 0xA0
_ESCAPED = frozenset(',=+<>#;"\\')
_BLANKS = " \r"


def owner_of(certificate: bytes) -> str:
    """Return the subject of a certificate in DER. Raises ValueError for one that has no such form."""
    try:
        [(_, whole)] = _elements(certificate)
        (_, content), *_ = _elements(whole)
        parts = [each for each in _elements(content) if each[0] != _VERSION]
        _, subject = parts[4]  # behind serial number, algorithm, issuer and validity
    except (IndexError, ValueError) as error:
        raise ValueError("it is no certificate") from error
    return written(subject)


def written(name: bytes) -> str:
    """Return a name, given as the content of its sequence in DER. Raises ValueError."""
    groups = ["+".join(_part(part) for _, part in _elements(group)) for _, group in _elements(name)]
    return ",".join(reversed(groups))


def _part(part: bytes) -> str:
    (_, kind), (tag, value) = _elements(part)
    number = _object_identifier(kind)
    if tag == _BMP_TEXT:
        raise ValueError("its name is in UTF-16, which is not read")
    if number not in _KEYWORDS or tag not in _TEXTS:
        return f"{_KEYWORDS.get(number, number)}=#{_encoded(tag, value).hex()}"
    return f"{_KEYWORDS[number]}={_escaped(value.decode())}"


def _escaped(text: str) -> str:
    escaped = "".join("\\00" if each == "\0" else f"\\{each}" if each in _ESCAPED else each for each in text)
    inner = escaped.strip(_BLANKS)
    begin = len(escaped) - len(escaped.lstrip(_BLANKS))
    before, after = escaped[:begin], escaped[begin + len(inner) :]
    return "".join(f"\\{each}" for each in before) + inner + "".join(f"\\{each}" for each in after)


def _object_identifier(content: bytes) -> str:
    first, *rest = _base_128(content)
    top = min(first // 40, 2)
    return ".".join(map(str, (top, first - 40 * top, *rest)))


def _base_128(content: bytes) -> Iterator[int]:
    number = 0
    for each in content:
        number = number << 7 | each & 0x7F
        if not each & 0x80:
            yield number
            number = 0


def _encoded(tag: int, value: bytes) -> bytes:
    size = len(value)
    if size < 0x80:
        return bytes((tag, size)) + value
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + value


def _elements(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tag and content of each element. Raises ValueError where one does not end in time."""
    position = 0
    while position < len(content):
        try:
            tag, size = content[position], content[position + 1]
        except IndexError:
            raise ValueError("it ends within an element") from None
        position += 2
        if size & 0x80:
            many = size & 0x7F
            size = int.from_bytes(content[position : position + many], "big")
            position += many
        if position + size > len(content):
            raise ValueError("it ends within an element")
        yield tag, content[position : position + size]
        position += size
