"""The keys that a server keeps of a password: from a salted password into the core, and from there to a login."""

from exacta.core.values.scram import ScramKey, ScramMechanism
from exacta.core.values.secret import Secret
from exacta.protocol.sasl.scram import ALGORITHMS, ScramKeys, keys_from_salted


def kept_key(mechanism: ScramMechanism, salt: bytes, iterations: int, salted_password: bytes) -> ScramKey:
    """Derive what is kept of a user (KIP-554); the salted password is kept nowhere."""
    keys = keys_from_salted(ALGORITHMS[mechanism.sasl_name], salted_password, bytes(salt), iterations)
    return ScramKey(mechanism, keys.salt, iterations, Secret(keys.stored_key), Secret(keys.server_key))


def shown_keys(kept: ScramKey) -> ScramKeys:
    """Return what is kept of a user to a login, which computes with it."""
    return ScramKeys(kept.salt, kept.iterations, kept.stored_key.value, kept.server_key.value)
