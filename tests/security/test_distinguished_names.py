"""The name of a certificate's owner: as Java's `X500Principal.getName()` has written each of these, or refused."""

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import NameAttribute, RelativeDistinguishedName, _ASN1Type
from cryptography.x509.oid import NameOID as Part
from hypothesis import given
from hypothesis import strategies as st

from exacta.security.distinguished_names import owner_of, written

IA5 = _ASN1Type.IA5String


def name(*parts: NameAttribute | RelativeDistinguishedName) -> bytes:
    groups = [
        each if isinstance(each, RelativeDistinguishedName) else RelativeDistinguishedName([each]) for each in parts
    ]
    encoded = x509.Name(groups).public_bytes()
    header = 2 if encoded[1] < 0x80 else 2 + (encoded[1] & 0x7F)
    return encoded[header:]


def common(text: str) -> bytes:
    return name(NameAttribute(Part.COMMON_NAME, text))


@pytest.mark.parametrize(
    ("encoded", "text"),
    [
        (
            name(
                NameAttribute(Part.COUNTRY_NAME, "US"),
                NameAttribute(Part.ORGANIZATION_NAME, "Org"),
                NameAttribute(Part.ORGANIZATIONAL_UNIT_NAME, "ServiceUsers"),
                NameAttribute(Part.COMMON_NAME, "Duke"),
            ),
            "CN=Duke,OU=ServiceUsers,O=Org,C=US",
        ),
        (common("Tkac, Adam"), r"CN=Tkac\, Adam"),
        (common(' #a"b+c;d<e>f=g\\h/i '), r"CN=\ \#a\"b\+c\;d\<e\>f\=g\\h/i\ "),
        (common("#lead"), r"CN=\#lead"),
        (common("new\nline\tz"), "CN=new\nline\tz"),
        (common("\r cr \r"), "CN=\\\r\\ cr\\ \\\r"),
        (common("nul\0end"), r"CN=nul\00end"),
        (common("Jürgen 漢"), "CN=Jürgen 漢"),
        (common("  two  in  "), r"CN=\ \ two  in\ \ "),
        (
            name(NameAttribute(Part.EMAIL_ADDRESS, "a@b.c", _type=IA5), NameAttribute(Part.COMMON_NAME, "mail")),
            "CN=mail,1.2.840.113549.1.9.1=#16056140622e63",
        ),
        (
            name(NameAttribute(Part.SERIAL_NUMBER, "77"), NameAttribute(Part.TITLE, "T")),
            "2.5.4.12=#0c0154,2.5.4.5=#13023737",
        ),
        (
            name(
                NameAttribute(Part.DOMAIN_COMPONENT, "com", _type=IA5),
                NameAttribute(Part.DOMAIN_COMPONENT, "mycp", _type=IA5),
                NameAttribute(Part.USER_ID, "u1"),
                NameAttribute(Part.STREET_ADDRESS, "s 1"),
                NameAttribute(Part.LOCALITY_NAME, "L1"),
                NameAttribute(Part.STATE_OR_PROVINCE_NAME, "MD"),
            ),
            "ST=MD,L=L1,STREET=s 1,UID=u1,DC=mycp,DC=com",
        ),
        (
            name(
                RelativeDistinguishedName(
                    [NameAttribute(Part.COMMON_NAME, "multi"), NameAttribute(Part.ORGANIZATIONAL_UNIT_NAME, "ou")]
                ),
                NameAttribute(Part.COMMON_NAME, "z"),
            ),
            "CN=z,OU=ou+CN=multi",
        ),
        (name(NameAttribute(Part.COMMON_NAME, "t61", _type=_ASN1Type.T61String)), "CN=t61"),
        (name(NameAttribute(Part.COMMON_NAME, "ab", _type=_ASN1Type.UniversalString)), "CN=#1c080000006100000062"),
        (b"", ""),
    ],
)
def test_names_are_written_as_by_java(encoded: bytes, text: str) -> None:
    assert written(encoded) == text


def test_a_name_that_java_would_garble_is_refused() -> None:
    with pytest.raises(ValueError, match="UTF-16"):
        written(name(NameAttribute(Part.COMMON_NAME, "bmp", _type=_ASN1Type.BMPString)))
    with pytest.raises(ValueError, match="utf-8"):
        written(common("abc").replace(b"abc", b"\xff\xfe\xfd"))


def test_the_owner_of_a_certificate() -> None:
    issued = trustme.CA().issue_cert(common_name="x" * 60, organization_name="o" * 300)
    certificate = x509.load_pem_x509_certificate(issued.cert_chain_pems[0].bytes())
    unit = certificate.subject.get_attributes_for_oid(Part.ORGANIZATIONAL_UNIT_NAME)[0].value
    escaped = str(unit).replace("#", "\\#")
    assert owner_of(certificate.public_bytes(Encoding.DER)) == f"CN={'x' * 60},OU={escaped},O={'o' * 300}"


@given(st.binary(max_size=200))
def test_nonsense_is_no_certificate(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        owner_of(content)
