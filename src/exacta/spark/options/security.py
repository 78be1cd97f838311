"""The options of TLS and SASL, by the names of the Java client with `kafka.` in front, and their joint meaning.

This module owns the rules by which they go together. An option that would have no effect, or could not work, is refused
when the query is set up, in one sentence that shows no secret. The content of the files is only read when connections
are made, which may be on another machine.
"""

from typing import Any

from exacta.client.sasl import MECHANISMS
from exacta.client.security import PLAIN, KeyStore, Sasl, Security, Tls, TrustStore
from exacta.key_stores import JKS, PEM, PKCS12, convert_jks
from exacta.spark.options.jaas import PLAIN_MODULE, SCRAM_MODULE, Login, parse_jaas
from exacta.spark.options.parsing import Option, OptionError, Parsed, text

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_STORE_TYPES = (PEM, PKCS12, JKS)


def _upper_one_of(*allowed: str) -> Any:
    def parse(name: str, value: str) -> str:
        if value.strip().upper() not in allowed:
            raise OptionError(f"option '{name}' must be one of {', '.join(allowed)}, not '{value}'")
        return value.strip().upper()

    return parse


def _secret(name: str, value: str) -> str:
    if not value:
        raise OptionError(f"option '{name}' is empty")
    return value


def _pem(name: str, value: str) -> str:
    if "-----BEGIN" not in value:
        raise OptionError(f"option '{name}' must be the PEM text itself ('-----BEGIN …'), not the name of a file")
    return value


def _endpoint_identification(name: str, value: str) -> bool:
    if value.strip().lower() not in ("https", ""):
        raise OptionError(f"option '{name}' must be https or empty, not '{value}'")
    return bool(value.strip())


SECURITY = (
    Option(
        name="kafka.security.protocol",
        field="security_protocol",
        parse=_upper_one_of(*_PROTOCOLS),
        default="`PLAINTEXT`",
        about="`PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`",
    ),
    Option(
        name="kafka.sasl.mechanism",
        field="sasl_mechanism",
        parse=_upper_one_of(*MECHANISMS),
        default="needed with SASL",
        about="`PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`",
    ),
    Option(
        name="kafka.sasl.jaas.config",
        field="sasl_login",
        parse=parse_jaas,
        default="needed with SASL",
        about='`org.apache.kafka.common.security.scram.ScramLoginModule required username="…" password="…";`, or '
        "`…plain.PlainLoginModule`",
    ),
    Option(
        name="kafka.ssl.truststore.location",
        field="truststore_location",
        parse=text,
        default="the machine's authorities",
        about="a file with the certificates to trust; it must be on every machine of the job",
    ),
    Option(
        name="kafka.ssl.truststore.certificates",
        field="truststore_certificates",
        parse=_pem,
        default="none",
        about="the certificates to trust as PEM text, without a file",
    ),
    Option(
        name="kafka.ssl.truststore.type",
        field="truststore_type",
        parse=_upper_one_of(*_STORE_TYPES),
        default="what the file is",
        about="`PEM` or `PKCS12`. A file in JKS must be converted; the error says how",
    ),
    Option(
        name="kafka.ssl.truststore.password",
        field="truststore_password",
        parse=_secret,
        default="none",
        about="the password of a truststore in PKCS12",
    ),
    Option(
        name="kafka.ssl.keystore.location",
        field="keystore_location",
        parse=text,
        default="none",
        about="a file with the client's own key and certificate; it must be on every machine of the job",
    ),
    Option(
        name="kafka.ssl.keystore.key",
        field="keystore_key",
        parse=_pem,
        default="none",
        about="the client's own key as PEM text, without a file",
    ),
    Option(
        name="kafka.ssl.keystore.certificate.chain",
        field="keystore_certificate_chain",
        parse=_pem,
        default="none",
        about="the certificate of that key as PEM text",
    ),
    Option(
        name="kafka.ssl.keystore.type",
        field="keystore_type",
        parse=_upper_one_of(*_STORE_TYPES),
        default="what the file is",
        about="`PEM` or `PKCS12`",
    ),
    Option(
        name="kafka.ssl.keystore.password",
        field="keystore_password",
        parse=_secret,
        default="none",
        about="the password of a keystore in PKCS12",
    ),
    Option(
        name="kafka.ssl.key.password",
        field="key_password",
        parse=_secret,
        default="none",
        about="the password of an encrypted key in PEM",
    ),
    Option(
        name="kafka.ssl.endpoint.identification.algorithm",
        field="verify_host_name",
        parse=_endpoint_identification,
        default="`https`",
        about="if it is empty, a broker's certificate may be for another host name",
    ),
)

_NAMES = {option.field: option.name for option in SECURITY}
_TLS_FIELDS = tuple(option.field for option in SECURITY if option.field and option.name.startswith("kafka.ssl."))
_SASL_FIELDS = ("sasl_mechanism", "sasl_login")


def judge_security(parsed: Parsed) -> None:
    """Put the fields of `SECURITY` together as `security`, and note what does not go together."""
    given = {field: parsed.values.pop(field) for field in _NAMES if field in parsed.values}
    if not parsed.wrong.isdisjoint(_NAMES):
        return  # what belongs together cannot be told before each of them is right
    with parsed.noting():
        parsed.values["security"] = _together(given)


def _together(given: dict[str, Any]) -> Security:
    protocol = given.pop("security_protocol", "PLAINTEXT")
    with_tls, with_sasl = protocol.endswith("SSL"), protocol.startswith("SASL")
    unused = [
        f"option '{_NAMES[field]}' has no effect with option 'kafka.security.protocol' {protocol}: it needs {others}"
        for fields, wanted, others in (
            (_SASL_FIELDS, with_sasl, "SASL_PLAINTEXT or SASL_SSL"),
            (_TLS_FIELDS, with_tls, "SSL or SASL_SSL"),
        )
        for field in fields
        if not wanted and field in given
    ]
    if unused:
        raise OptionError(*unused)
    return Security(tls=_tls(given) if with_tls else None, sasl=_sasl(given, protocol) if with_sasl else None)


def _sasl(given: dict[str, Any], protocol: str) -> Sasl:
    missing = [field for field in _SASL_FIELDS if field not in given]
    if missing:
        raise OptionError(*(f"option 'kafka.security.protocol' {protocol} needs option '{_NAMES[f]}'" for f in missing))
    mechanism: str = given["sasl_mechanism"]
    login: Login = given["sasl_login"]
    wanted = PLAIN_MODULE if mechanism == PLAIN else SCRAM_MODULE
    if login.module != wanted:
        raise OptionError(
            f"option 'kafka.sasl.mechanism' {mechanism} needs {wanted} in option 'kafka.sasl.jaas.config', not "
            f"{login.module}"
        )
    return Sasl(mechanism=mechanism, username=login.username, password=login.password)


def _tls(given: dict[str, Any]) -> Tls:
    return Tls(
        truststore=_truststore(given), keystore=_keystore(given), verify_host_name=given.get("verify_host_name", True)
    )


def _truststore(given: dict[str, Any]) -> TrustStore | None:
    location, certificates = given.get("truststore_location"), given.get("truststore_certificates")
    if location is not None and certificates is not None:
        raise OptionError("only one of the options 'kafka.ssl.truststore.location' and '….certificates' can be set")
    if location is None and certificates is None:
        _refuse(given, "needs option 'kafka.ssl.truststore.location'", "truststore_type", "truststore_password")
        return None
    kind = _kind(given, "truststore_type", location)
    if kind == PEM:
        _refuse(given, "is not for PEM, which has no password", "truststore_password")
    return TrustStore(
        location=location, certificates=certificates, kind=kind, password=given.get("truststore_password")
    )


def _keystore(given: dict[str, Any]) -> KeyStore | None:
    location, key, chain = (given.get(f"keystore_{part}") for part in ("location", "key", "certificate_chain"))
    if location is not None and (key is not None or chain is not None):
        raise OptionError("only one of the options 'kafka.ssl.keystore.location' and '….key' can be set")
    if (key is None) != (chain is None):
        raise OptionError(
            "the options 'kafka.ssl.keystore.key' and 'kafka.ssl.keystore.certificate.chain' need each other"
        )
    if location is None and key is None:
        missing = "needs option 'kafka.ssl.keystore.location'"
        _refuse(given, missing, "keystore_type", "keystore_password", "key_password")
        return None
    kind = _kind(given, "keystore_type", location)
    if kind == PEM:
        _refuse(given, "is not for PEM: there the key has one, 'kafka.ssl.key.password'", "keystore_password")
    if kind == PKCS12:
        if given.get("key_password") not in (None, given.get("keystore_password")):
            raise OptionError(
                "option 'kafka.ssl.key.password' must be the store's password where the keystore is PKCS12"
            )
        if "keystore_password" not in given:
            raise OptionError("a keystore in PKCS12 needs option 'kafka.ssl.keystore.password'")
    return KeyStore(
        location=location,
        key=key,
        certificate_chain=chain,
        kind=kind,
        password=given.get("keystore_password"),
        key_password=given.get("key_password"),
    )


def _kind(given: dict[str, Any], field: str, location: str | None) -> str | None:
    """Return the type of a store, None where the file is to say it."""
    kind: str | None = given.get(field)
    if location is None:
        if kind not in (None, PEM):
            raise OptionError(f"option '{_NAMES[field]}' can only be PEM where the store is given as text")
        return PEM
    if kind == JKS:
        raise OptionError(f"option '{_NAMES[field]}': {convert_jks(location)}")
    return kind


def _refuse(given: dict[str, Any], why: str, *fields: str) -> None:
    found = [f"option '{_NAMES[field]}' {why}" for field in fields if field in given]
    if found:
        raise OptionError(*found)
