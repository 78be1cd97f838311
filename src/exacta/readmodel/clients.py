"""The words by which a client is told to people."""


def client_in_words(client_id: str, client_host: str) -> str:
    """Return who a client is; nothing where there is none."""
    if not client_id and not client_host:
        return ""
    return f"client '{client_id}' at {client_host.lstrip('/')}"
