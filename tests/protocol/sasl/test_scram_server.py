"""The server's side of SCRAM: the examples of the RFCs, any name and password, and what a client may not do."""

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exacta.protocol.sasl.scram import ScramError, keys_from_salted, salted_password
from exacta.protocol.sasl.scram_client import ScramClient
from exacta.protocol.sasl.scram_server import ScramServer
from tests.protocol.sasl.test_scram_client import EXAMPLES
from tests.shares import examples

SALT = b"salt of sixteen."


def keys_of(password: str, algorithm: str = "sha256", salt: bytes = SALT):
    return keys_from_salted(algorithm, salted_password(algorithm, password, salt, 4096), salt, 4096)


@pytest.mark.parametrize(("algorithm", "first", "server_first", "final", "server_final"), EXAMPLES)
def test_the_examples_of_the_rfcs(algorithm, first, server_first, final, server_final):
    salt = base64.b64decode(server_first.split(b",s=")[1].split(b",")[0])
    nonce = server_first.split(b",")[0].removeprefix(b"r=").removeprefix(first.rpartition(b"r=")[2]).decode()
    server = ScramServer(algorithm, lambda user: keys_of("pencil", algorithm, salt), nonce)
    assert server.first(first) == server_first
    assert server.user == "user"
    assert server.final(final) == server_final


@settings(max_examples=examples(25), deadline=None)
@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1), st.sampled_from(["sha256", "sha512"]))
def test_the_right_password_and_no_other_one(user, password, other, algorithm):
    texts = (user, password, other)
    user, password, other = (text.encode("utf-8", "ignore").decode().replace("\0", "") or "u" for text in texts)

    def login(typed):
        server = ScramServer(algorithm, lambda name: keys_of(password, algorithm))
        client = ScramClient(algorithm, user, typed)
        client.verify(server.final(client.final(server.first(client.first()))))
        return server.user

    assert login(password) == user
    if other != password:
        with pytest.raises(ScramError, match="its proof is wrong"):
            login(other)


@pytest.mark.parametrize(
    ("first", "sentence"),
    [
        (b"", "its first message is malformed"),
        (b"\xff", "not text"),
        (b"n,,n=,r=x", "malformed"),
        (b"n,,n=a", "malformed"),
        (b"n,,r=x", "malformed"),
        (b"n,,n=a,r=", "malformed"),
        (b"n,,n=a\0b,r=x", "malformed"),
        (b"n,,n=a=2Db,r=x", "malformed"),
        (b"n,,n=a,r=x y", "malformed"),
        (b"n,,m=1,n=a,r=x", "malformed"),
        (b"n,,n=a,r=x,tokenauth=true", "malformed"),
        (b"p=tls-unique,,n=a,r=x", "malformed"),
        (b"n,a=b,n=a,r=x", "it asks to act for another user"),
    ],
)
def test_a_first_message_that_is_none(first, sentence):
    with pytest.raises(ScramError, match=sentence):
        ScramServer("sha256", lambda user: keys_of("pencil")).first(first)


def finals():
    """Yield a login's server, its right final message, and that in two parts: without the proof, and the proof."""
    server = ScramServer("sha256", lambda user: keys_of("pencil"))
    client = ScramClient("sha256", "user", "pencil")
    final = client.final(server.first(client.first()))
    unproved, _, proof = final.rpartition(b",p=")
    return server, unproved, proof


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda unproved, proof: unproved, "malformed"),
        (lambda unproved, proof: unproved + b",p=", "malformed"),
        (lambda unproved, proof: unproved + b",p=AAAA", "its proof is malformed"),
        (lambda unproved, proof: unproved + b",p=" + base64.b64encode(bytes(32)), "its proof is wrong"),
        (lambda unproved, proof: unproved[:-1] + b",p=" + proof, "its nonce is not ours"),
        (lambda unproved, proof: b"c=biws,r=other,p=" + proof, "its nonce is not ours"),
        (lambda unproved, proof: unproved.replace(b"biws", b"eSws") + b",p=" + proof, "channel binding"),
        (lambda unproved, proof: unproved + b",x=1,p=" + proof, "malformed"),
        (lambda unproved, proof: b"\xff", "not text"),
    ],
)
def test_a_final_message_that_proves_nothing(change, sentence):
    server, unproved, proof = finals()
    with pytest.raises(ScramError, match=sentence):
        server.final(change(unproved, proof))


def test_no_key_is_shown():
    keys = keys_of("pencil")
    for key in (keys.stored_key, keys.server_key, keys.salt):
        assert repr(key)[2:-1] not in repr(keys)
        assert key.hex() not in repr(keys)
