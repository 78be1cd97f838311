"""Attackers of a TLS door that wants a certificate: handshakes whose flights are changed, and certificates, too.

Nobody has a certificate of an authority that the door trusts: no handshake may end well. What OpenSSL takes of a
certificate that is trusted, our own code reads for the name of the principal: it must refuse nonsense as such.
"""

import ssl
import time
from functools import cache

import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from exacta.security.alerts import ServerContext, telling
from exacta.security.distinguished_names import owner_of
from exacta.security.principal_rules import PrincipalRules
from tests.fuzz.changing import changed
from tests.fuzz.choices import Choices
from tests.fuzz.watched import ALLOWED_SECONDS, Watch

MOST_HANDSHAKES = 4
MOST_FLIGHTS = 4
MOST_SENT_BYTES = 64 << 10
RULES = PrincipalRules(r"RULE:^CN=([^,]*),OU=(.*)$/$1@$2/L, RULE:.*O=(.*?),.*/$1/U, DEFAULT")


@cache
def _door() -> tuple[ssl.SSLContext, list[ssl.SSLContext], bytes]:
    """Return a door, its attackers, and a certificate in DER."""
    ours, theirs = trustme.CA(), trustme.CA()
    door = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    ours.issue_cert("localhost").configure_cert(door)
    ours.configure_trust(door)
    door.verify_mode = ssl.CERT_REQUIRED
    attackers = []
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        for shown in (None, theirs.issue_cert("mallory", organization_name="o", organization_unit_name="u")):
            attacker = ssl.create_default_context()
            ours.configure_trust(attacker)
            attacker.maximum_version = version
            if shown is not None:
                shown.configure_cert(attacker)
            attackers.append(attacker)
    issued = ours.issue_cert(common_name="alice", organization_name="o", organization_unit_name="u")
    certificate = x509.load_pem_x509_certificate(issued.cert_chain_pems[0].bytes())
    return door, attackers, certificate.public_bytes(Encoding.DER)


def before_login(data: bytes) -> None:
    """Attack it."""
    choices = Choices(data)
    door, attackers, certificate = _door()
    began_s = time.thread_time()
    handshakes = 0
    while choices.are_left and handshakes < MOST_HANDSHAKES:
        handshakes += 1
        if choices.once_in(3):
            _name(_changed(choices, certificate))
        else:
            _shake_hands(choices, door, choices.pick(attackers))
    taken_s = time.thread_time() - began_s
    assert taken_s < ALLOWED_SECONDS * Watch.slower * max(1, handshakes), f"{handshakes} handshakes of {taken_s:.3f} s"


def _shake_hands(choices: Choices, door: ssl.SSLContext, attacker: ssl.SSLContext) -> None:
    told: list[ssl.SSLError] = []
    to_door, from_door, to_client, from_client = (ssl.MemoryBIO() for _ in range(4))
    with telling(told.append):
        server = door.wrap_bio(to_door, from_door, server_side=True)
    client = attacker.wrap_bio(to_client, from_client, server_hostname="localhost")
    sent = 0
    for _ in range(MOST_FLIGHTS):
        if _went_on(client) is None:
            return
        flight = from_client.read()
        to_door.write(_changed(choices, flight) if choices.once_in(2) else flight)
        went_on = _went_on(server)
        assert went_on is not True, "somebody without a certificate has come in"
        answer = from_door.read()
        sent += len(answer)
        assert sent < MOST_SENT_BYTES
        assert len(told) < 2, "a refusal is told once"
        if went_on is None:
            return
        to_client.write(answer)


def _went_on(side: ssl.SSLObject) -> bool | None:
    """Go on with a handshake; return whether it has ended well, or None where it has failed."""
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    except ssl.SSLError:
        return None
    return True


def _changed(choices: Choices, content: bytes) -> bytes:
    return changed(choices, bytes(4) + content)[4:]


def _name(certificate: bytes) -> None:
    try:
        name = RULES.name_of(owner_of(certificate))
    except ValueError:
        return
    assert name
    assert "\0" not in name
