"""The broker's options for TLS, by Kafka's names and by Pulsar's; without a door that speaks TLS they do nothing."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

_STORE_TYPE = "(PEM|PKCS12|JKS)?"
_SECRET = {"secret": True}


@dataclass(frozen=True, kw_only=True)
class TlsOptions:
    """The options for TLS, each with its default. A Kafka listener may have its own (`listener.name.NAME.ssl.…`)."""

    ssl_keystore_location: Annotated[
        str,
        Meta(
            description="File with the private key and the certificate that doors with TLS present, and its chain: in "
            "PEM, or in PKCS #12, which needs the extra `tls`. A changed file is read again."
        ),
    ] = ""
    ssl_keystore_type: Annotated[
        str, Meta(pattern=_STORE_TYPE, description="PEM or PKCS12; empty: the file says it. JKS must be converted.")
    ] = ""
    ssl_keystore_password: Annotated[
        str, Meta(description="Password of a keystore in PKCS #12, and of its key.", extra=_SECRET)
    ] = ""
    ssl_keystore_key: Annotated[
        str, Meta(description="The private key as text in PEM, in place of a file.", extra=_SECRET)
    ] = ""
    ssl_keystore_certificate_chain: Annotated[
        str, Meta(description="The certificate of ssl.keystore.key and its chain, as text in PEM.")
    ] = ""
    ssl_key_password: Annotated[str, Meta(description="Password of a key in PEM that has one.", extra=_SECRET)] = ""
    ssl_truststore_location: Annotated[
        str,
        Meta(
            description="File with the authorities whose client certificates are accepted, in PEM or PKCS #12. A "
            "changed file is read again."
        ),
    ] = ""
    ssl_truststore_type: Annotated[
        str, Meta(pattern=_STORE_TYPE, description="PEM or PKCS12; empty: the file says it.")
    ] = ""
    ssl_truststore_password: Annotated[
        str, Meta(description="Password of a truststore in PKCS #12.", extra=_SECRET)
    ] = ""
    ssl_truststore_certificates: Annotated[
        str, Meta(description="The authorities as text in PEM, in place of a file.")
    ] = ""
    ssl_client_auth: Annotated[
        str,
        Meta(
            pattern="none|requested|required",
            description="Whether clients are asked for a certificate, which is their login: never (none), if they have "
            "one (requested), or always (required). An accepted one gives the principal.",
        ),
    ] = "none"
    ssl_principal_mapping_rules: Annotated[
        str,
        Meta(
            description="How the name in a client's certificate becomes the name of its principal: rules with commas "
            "between them, of which the first that fits counts. RULE:pattern/replacement/ may end with L or U, for "
            "lower or upper case; DEFAULT is the whole name.",
        ),
    ] = "DEFAULT"
    ssl_enabled_protocols: Annotated[
        str,
        Meta(
            pattern=r"TLSv1\.[23](,TLSv1\.[23])*",
            description="The versions of TLS that are spoken. Older ones than TLSv1.2 are not.",
        ),
    ] = "TLSv1.2,TLSv1.3"
    tlsCertificateFilePath: Annotated[
        str,
        Meta(
            description="Pulsar's name for the certificate of --pulsar-tls-listen and --web-tls-listen, and its chain, "
            "in PEM. Without it these doors have ssl.keystore.* and ssl.truststore.*, as Kafka's."
        ),
    ] = ""
    tlsKeyFilePath: Annotated[
        str, Meta(description="Pulsar's name for the private key of tlsCertificateFilePath, in PEM.")
    ] = ""
    tlsTrustCertsFilePath: Annotated[
        str,
        Meta(
            description="Pulsar's name for the authorities whose client certificates are accepted, in PEM. With it, "
            "Pulsar clients are asked for a certificate."
        ),
    ] = ""
    tlsRequireTrustedClientCertOnConnect: Annotated[
        bool, Meta(description="Pulsar's name for asking every client for a certificate, which it must have.")
    ] = False
