"""The secrets of tests that look for them: passwords, keys and tokens that nobody may be shown, and all their forms.

Each has `MARK` in it, so that a text that is searched for one is searched for all. What is derived from a password and
kept by a server has no mark, and is made by `kept_of`.
"""

import base64
import re
from collections.abc import Iterable

from exacta.protocol.sasl.scram import ALGORITHMS, keys_from_salted, salted_password

MARK = "hush7e3a"
PASSWORDS = {"alice": f"{MARK}-alice", "root": f"{MARK}-root", "Jürgen,=x": f"{MARK}-päss"}
WRONG_PASSWORD = f"{MARK}-guess"
KEYSTORE_PASSWORD = f"{MARK}-store"
TRUSTSTORE_PASSWORD = f"{MARK}-trust"
KEY_PASSWORD = f"{MARK}-key"
TOKEN_SECRET = f"{MARK}-is-the-secret-by-which-tokens-are-signed".encode()
SALT = b"salt of sixteen."
ITERATIONS = 4096


def kept_of(password: str) -> list[bytes]:
    """Return what a server keeps of a password with this salt, or could derive it from."""
    found = []
    for algorithm in ALGORITHMS.values():
        salted = salted_password(algorithm, password, SALT, ITERATIONS)
        keys = keys_from_salted(algorithm, salted, SALT, ITERATIONS)
        found += [salted, keys.stored_key, keys.server_key]
    return found


def forms_of(secret: bytes | str) -> set[bytes]:
    """Return the forms in which a secret might be shown: raw, hexadecimal, base64 and as Python and JSON write it."""
    raw = secret.encode() if isinstance(secret, str) else secret
    texts = {raw.hex(), raw.hex().upper(), repr(raw)[2:-1], repr(list(raw))[1:-1]}
    coded = {base64.b64encode(raw), base64.urlsafe_b64encode(raw)}
    return {raw, *(each.encode() for each in texts), *coded, *(each.rstrip(b"=") for each in coded)}


class Hidden:
    """Secrets that are looked for."""

    def __init__(self, secrets: Iterable[bytes | str]) -> None:
        forms = {form: secret for secret in secrets for form in forms_of(secret) if len(form) >= 8}
        self._secrets = forms
        self._pattern = re.compile(b"|".join(re.escape(each) for each in sorted(forms, key=len, reverse=True)))

    def found_in(self, shown: bytes | str) -> bytes | str | None:
        """Return a secret that is shown; None: none is."""
        raw = shown.encode("utf-8", "surrogateescape") if isinstance(shown, str) else shown
        found = self._pattern.search(raw)
        return None if found is None else self._secrets[found[0]]


ALL = Hidden(
    [
        *PASSWORDS.values(),
        *(kept for password in PASSWORDS.values() for kept in kept_of(password)),
        *(WRONG_PASSWORD, KEYSTORE_PASSWORD, TRUSTSTORE_PASSWORD, KEY_PASSWORD, TOKEN_SECRET, MARK),
    ]
)
"""All of these."""
