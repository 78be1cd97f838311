"""The certificate authority of an embedded broker: its certificates for the broker and for clients, in PEM files.

The files lie in a temporary directory, which goes with this object, or when the process ends. trustme makes the
certificates; it is loaded only where a broker has TLS.
"""

import re

from exacta.client.security import KeyStore, Tls, TrustStore
from exacta.front.doors import WILDCARDS
from exacta.key_stores import PEM
from exacta.server.requirement import require
from exacta.testing.access import KITS_OWN
from exacta.testing.directory import DataDirectory

RULES = "RULE:^CN=([^,]+).*$/$1/,DEFAULT"
"""A client's principal is the common name in its certificate."""


class Authority:
    """An authority that only the clients of one broker trust. Raises ServerError where trustme is missing."""

    def __init__(self, host: str) -> None:
        """Issue the broker's certificate, for localhost and for `host`, unless that means every address."""
        require("trustme", "a broker with tls=True needs trustme", extra="testing")
        import trustme

        self._authority = trustme.CA()
        self._kits: str | None = None
        self._directory = DataDirectory(None)
        self._directory.make()
        self.ca = str(self._directory.path / "ca.pem")
        """The file with the certificate of the authority, which clients trust."""
        self._authority.cert_pem.write_to_path(self.ca)
        names = {"localhost", "127.0.0.1", "::1"} | ({host} - WILDCARDS)
        self.server = str(self._directory.path / "server.pem")
        """The file with the key and the certificate of the broker."""
        self._authority.issue_cert(*sorted(names)).private_key_and_cert_chain_pem.write_to_path(self.server)

    def client(self, name: str) -> str:
        """Return a file with a key and a certificate for a client of this common name; a second call makes another."""
        path = self._directory.path / f"client-{re.sub(r'[^A-Za-z0-9-]', '_', name)}.pem"
        # Java reads no certificate whose list of other names is empty.
        issued = self._authority.issue_cert("client.invalid", common_name=name)
        issued.private_key_and_cert_chain_pem.write_to_path(str(path))
        return str(path)

    def kits_own(self) -> Tls:
        """Return the TLS of the kit's own client, which has a certificate."""
        if self._kits is None:
            self._kits = self.client(KITS_OWN)
        keystore = KeyStore(location=self._kits, kind=PEM)
        return Tls(truststore=TrustStore(location=self.ca, kind=PEM), keystore=keystore)

    def options(self) -> dict[str, str]:
        """Return the options of a broker that has this authority."""
        return {
            "ssl.keystore.location": self.server,
            "ssl.truststore.location": self.ca,
            "ssl.principal.mapping.rules": RULES,
        }
