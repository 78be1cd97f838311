"""The keys that a server keeps of a salted password (RFC 5802, section 3; KIP-554)."""

import hashlib
import hmac

from exacta.core.values.scram import ScramKey, ScramMechanism
from exacta.core.values.secret import Secret


def key_of(mechanism: ScramMechanism, salt: bytes, iterations: int, salted_password: bytes) -> ScramKey:
    """Derive the keys of a user; the salted password is kept nowhere."""
    name = mechanism.hash_name
    client_key = hmac.digest(salted_password, b"Client Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    server_key = hmac.digest(salted_password, b"Server Key", name)
    return ScramKey(mechanism, bytes(salt), iterations, Secret(stored_key), Secret(server_key))
