"""A file of properties of Kafka's clients, as `--config` takes it: the Java client's keys, and librdkafka's.

The module owns what librdkafka (kcat, confluent-kafka) calls otherwise than the Java client does. A file may hold
either, and is handed on in the Java client's keys, which `exacta.spark.options` reads.
"""

from collections.abc import Mapping
from pathlib import Path

_PEM = "PEM"


class UnreadableFile(Exception):
    """A file that a property names cannot be read. The message is one sentence."""


def in_javas_words(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties in which librdkafka's keys about the connection are the Java client's.

    Raises `UnreadableFile`.
    """
    found = dict(properties)
    _rename(found, "metadata.broker.list", "bootstrap.servers")
    _rename(found, "sasl.mechanisms", "sasl.mechanism")
    _rename(found, "ssl.ca.location", "ssl.truststore.location", {"ssl.truststore.type": _PEM})
    _rename(found, "ssl.ca.pem", "ssl.truststore.certificates", {"ssl.truststore.type": _PEM})
    for theirs, ours in (("certificate", "certificate.chain"), ("key", "key")):
        keystore = f"ssl.keystore.{ours}"
        _rename(found, f"ssl.{theirs}.pem", keystore, {"ssl.keystore.type": _PEM})
        if f"ssl.{theirs}.location" in found:
            found[f"ssl.{theirs}.location"] = _content(f"ssl.{theirs}.location", found)
            _rename(found, f"ssl.{theirs}.location", keystore, {"ssl.keystore.type": _PEM})
    if found.get("ssl.endpoint.identification.algorithm") == "none":
        found["ssl.endpoint.identification.algorithm"] = ""
    if "security.protocol" in found:
        found["security.protocol"] = found["security.protocol"].upper()
    if "sasl.username" in found and "sasl.jaas.config" not in found:
        found["sasl.jaas.config"] = _login(found)
        del found["sasl.username"]
        found.pop("sasl.password", None)
    return found


def logging_in(properties: Mapping[str, str], user: str, password: str) -> dict[str, str]:
    """Return properties with this login: by SCRAM, unless they say another mechanism, and with TLS, if they say so."""
    found = {name: value for name, value in properties.items() if name != "sasl.jaas.config"}
    protocol = found.get("security.protocol", "PLAINTEXT").upper()
    found["security.protocol"] = protocol if protocol.startswith("SASL_") else f"SASL_{protocol}"
    if not {"sasl.mechanism", "sasl.mechanisms"} & found.keys():
        found["sasl.mechanism"] = "SCRAM-SHA-512"
    return found | {"sasl.username": user, "sasl.password": password}


def _rename(properties: dict[str, str], theirs: str, ours: str, more: Mapping[str, str] | None = None) -> None:
    if theirs in properties:
        value = properties.pop(theirs)
        for key, given in {ours: value, **(more or {})}.items():
            properties.setdefault(key, given)


def _content(key: str, properties: Mapping[str, str]) -> str:
    try:
        return Path(properties[key]).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UnreadableFile(f"{key}: '{properties[key]}' cannot be read: {reason}") from error


def _login(properties: Mapping[str, str]) -> str:
    """Return name and password as the Java client takes them."""
    scram = properties.get("sasl.mechanism", "").upper().startswith("SCRAM")
    module = "scram.ScramLoginModule" if scram else "plain.PlainLoginModule"
    name, password = (_quoted(properties.get(f"sasl.{each}", "")) for each in ("username", "password"))
    return f"org.apache.kafka.common.security.{module} required username={name} password={password};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
