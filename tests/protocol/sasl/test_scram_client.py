"""SCRAM: the examples of the RFCs, and what a server may not do."""

import base64

import pytest

from exacta.protocol.sasl.scram import ScramError
from exacta.protocol.sasl.scram_client import ScramClient

EXAMPLES = [
    # RFC 5802 §5
    (
        "sha1",
        b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
        b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
        b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
        b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
    ),
    # RFC 7677 §3
    (
        "sha256",
        b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ),
]


@pytest.mark.parametrize(("algorithm", "first", "server_first", "final", "server_final"), EXAMPLES)
def test_the_examples_of_the_rfcs(algorithm, first, server_first, final, server_final):
    scram = ScramClient(algorithm, "user", "pencil", nonce=first.rpartition(b"r=")[2].decode())
    assert scram.first() == first
    assert scram.final(server_first) == final
    scram.verify(server_final)
    with pytest.raises(ScramError, match="its signature is wrong"):
        scram.verify(b"v=" + base64.b64encode(b"x" * 20))


@pytest.mark.parametrize(
    ("server_first", "sentence"),
    [
        (b"r=other,s=QSXCR+Q6sek8bf92,i=4096", "its nonce does not continue ours"),
        (b"r=mine,s=QSXCR+Q6sek8bf92,i=4096", "its nonce does not continue ours"),
        (b"r=mine1,s=,i=4096", "no salt"),
        (b"r=mine1,s=QSXCR+Q6sek8bf92,i=-1", "no number of iterations"),
        (b"r=mine1,s=QSXCR+Q6sek8bf92,i=4095", "it wants 4095 iterations: fewer than 4096 are not safe"),
        (b"r=mine1,s=QSXCR+Q6sek8bf92,i=4000000000", "it wants 4000000000 iterations: .* more than 10000000 "),
        (b"\xff", "something that is not text"),
        (b"", "its nonce does not continue ours"),
    ],
)
def test_what_a_server_may_not_ask(server_first, sentence):
    scram = ScramClient("sha256", "user", "pencil", nonce="mine")
    with pytest.raises(ScramError, match=sentence):
        scram.final(server_first)


@pytest.mark.parametrize(
    ("server_final", "sentence"),
    [
        (b"e=invalid-proof", "it says 'invalid-proof'"),
        (b"v=", "its signature is wrong"),
        (b"", "its signature is wrong"),
    ],
)
def test_a_server_that_refuses_or_does_not_sign(server_final, sentence):
    scram = ScramClient("sha256", "user", "pencil", nonce="mine")
    scram.final(b"r=mine1,s=QSXCR+Q6sek8bf92,i=4096")
    with pytest.raises(ScramError, match=sentence):
        scram.verify(server_final)
