"""The parts of a run that need no cluster: how it is reached, who is killed, what is drawn."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest
import trustme
from confluent_kafka import Producer
from cryptography.hazmat.primitives.serialization import NoEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore
from cryptography.x509 import load_pem_x509_certificate

from exacta.client.errors import TlsFailed
from exacta.client.security import Cluster, KeyStore, Sasl, Security, Tls, TrustStore
from exacta.verify.campaign import processes
from exacta.verify.campaign.cluster import Watcher
from exacta.verify.campaign.faults import BrokerFaults, Clock, process_id
from exacta.verify.campaign.librdkafka import settings_of
from exacta.verify.campaign.processes import ClientProcess
from exacta.verify.campaign.settings import CampaignError, CampaignSettings
from exacta.verify.history import CommitAsked, Op, Outcome
from exacta.verify.workload import plan
from exacta.verify.workload.spec import Role, Spec
from tests.waiting import wait_until


def test_a_secured_cluster_is_reached_by_librdkafka_as_by_our_client(tmp_path: Path) -> None:
    authority = trustme.CA()
    pem = authority.cert_pem.bytes().decode()
    given = load_pem_x509_certificate(pem.encode())
    (tmp_path / "trust.p12").write_bytes(serialize_java_truststore([PKCS12Certificate(given, None)], NoEncryption()))
    sasl = Sasl(mechanism="SCRAM-SHA-256", username="u", password="secret")
    for store in (TrustStore(certificates=pem), TrustStore(location=str(tmp_path / "trust.p12"), password="")):
        security = Security(tls=Tls(truststore=store, verify_host_name=False), sasl=sasl)
        settings = settings_of(Cluster(bootstrap="h:1", security=security, client_id="c"))
        assert settings == {
            "bootstrap.servers": "h:1",
            "client.id": "c",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "u",
            "sasl.password": "secret",
            "ssl.endpoint.identification.algorithm": "none",
            "ssl.ca.pem": pem,
        }
        Producer({**settings, "log_level": 0, "error_cb": lambda error: None})
    missing = Security(tls=Tls(truststore=TrustStore(location=str(tmp_path / "none"))))
    with pytest.raises(TlsFailed, match="cannot be read on this machine"):
        settings_of(Cluster(bootstrap="h:1", security=missing))


def test_a_keystore_is_handed_to_librdkafka_as_it_is(tmp_path: Path) -> None:
    binary = tmp_path / "p12"
    binary.write_bytes(b"\x30\x82")
    text = tmp_path / "pem"
    text.write_text("-----BEGIN CERTIFICATE-----\n")

    def settings(store: KeyStore) -> dict[str, str]:
        return settings_of(Cluster(bootstrap="h:1", security=Security(tls=Tls(keystore=store))))

    found = settings(KeyStore(location=str(binary), password="s"))
    assert (found["ssl.keystore.location"], found["ssl.keystore.password"]) == (str(binary), "s")
    found = settings(KeyStore(location=str(text), key_password="s"))
    assert found["ssl.key.location"] == found["ssl.certificate.location"] == str(text)
    assert found["ssl.key.password"] == "s"
    found = settings(KeyStore(key="k", certificate_chain="c"))
    assert (found["ssl.key.pem"], found["ssl.certificate.pem"]) == ("k", "c")


@pytest.mark.parametrize("content", ["", "x", "1", "-5", "0"])
def test_what_names_no_process_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "pid").write_text(content)
    with pytest.raises(ValueError, match="names no process to kill"):
        process_id(str(tmp_path / "pid"))


def faults(tmp_path: Path, **settings: object) -> BrokerFaults:
    watcher = Watcher(Cluster(bootstrap="127.0.0.1:1"), 0)
    watcher.answers = lambda timeout_ms=0: None  # type: ignore[method-assign]
    return BrokerFaults(CampaignSettings(seed=1, directory=tmp_path, **settings), watcher)  # type: ignore[arg-type]


def test_a_process_is_killed_once_and_the_restart_command_is_run(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as victim:
        broker = faults(tmp_path, kill=str(victim.pid), restart_command=f"echo again >>{tmp_path}/done")
        assert [fault.outcome for fault in broker.strike()] == [Outcome.OK, Outcome.OK]
        assert victim.wait() == -9
    killed, restarted = broker.strike()
    assert (killed.outcome, restarted.outcome) == (Outcome.FAIL, Outcome.OK)
    assert "give a file with its process id" in killed.error
    assert (tmp_path / "done").read_text() == "again\n" * 2


def test_a_restart_command_that_fails_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match="the restart command ended with exit code 3"):
        faults(tmp_path, restart_command="exit 3").strike()
    assert not faults(tmp_path).possible


def test_a_fault_waits_for_progress() -> None:
    commits = 0
    clock = Clock(1e-9, random.Random(1), lambda: commits)

    def is_due() -> bool:
        return clock.due

    assert not is_due()
    commits = 5
    assert is_due()
    clock.again()
    assert not is_due()
    assert not Clock(0, random.Random(1), lambda: 100).due


def test_the_same_seed_draws_the_same() -> None:
    def draw(seed: int) -> list[plan.Plan]:
        chance = random.Random(seed)
        return [plan.draw_append(chance, "a.1", {"t": 3}) for _ in range(50)] + [
            plan.draw_transfer(chance, "b.1", {"t": 3})
        ]

    assert draw(1) == draw(1) != draw(2)
    assert {each.end for each in draw(1)} == set(plan.PlannedEnd)
    transfer = draw(1)[-1].records
    assert sum(int(value.split()[1]) for _, _, value in transfer) == 0
    assert len({partition for _, partition, _ in transfer}) == 2


def test_a_client_that_fails_is_named_with_its_last_words(tmp_path: Path) -> None:
    spec = Spec(role=Role.FINAL, process="final", incarnation=1, seed="", epoch_ns=0, client={"no.such.setting": "x"})
    client = ClientProcess(spec, tmp_path / "log", lambda line: None)
    with pytest.raises(CampaignError, match=r"client final failed: .*no\.such\.setting"):
        client.wait(30)


def test_a_client_that_crashes_is_no_failure_of_the_run(tmp_path: Path) -> None:
    spec = Spec(role=Role.READER, process="r", incarnation=1, seed="", epoch_ns=0, client={"bootstrap.servers": "h:1"})
    process = ClientProcess(spec, tmp_path / "log", lambda line: None)
    assert process.crashed == ""
    os.kill(process._process.pid, signal.SIGSEGV)
    assert process.wait(30)
    assert process.crashed == "signal 11"


SAYS_THAT_IT_COMMITS = """
import sys, time
sys.stdin.readline()  # the spec
sys.stdin.readline()  # that it is waited for
print('{"at_us": 1, "transaction": "p.1.1",  "process": "p", "op": "commit"}', flush=True)
time.sleep(60)
"""


def test_what_clients_write_down_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_PROGRAM", (sys.executable, "-c", SAYS_THAT_IT_COMMITS))
    spec = Spec(role=Role.APPEND, process="p", incarnation=1, seed="", epoch_ns=0, client={})
    got: list[Op] = []
    client = ClientProcess(spec, tmp_path / "log", got.append)
    started_s = time.monotonic()
    killing = threading.Thread(target=client.kill_as_it_commits, args=(50.0,))
    killing.start()
    wait_until(lambda: client._armed, 30)
    assert client._process.stdin is not None
    client._process.stdin.write(b"\n")
    client._process.stdin.flush()
    killing.join()
    client.kill()
    assert time.monotonic() - started_s < 40, "it was killed when it said so"
    assert got == [CommitAsked(process="p", transaction="p.1.1", at_us=1)]
    nonsense = (sys.executable, "-c", "print('nonsense')")
    monkeypatch.setattr(processes, "_PROGRAM", nonsense)
    with pytest.raises(CampaignError, match="client p failed: what it wrote down is no operation"):
        ClientProcess(spec, tmp_path / "log", got.append).wait(30)


def test_a_client_that_ends_before_it_is_told_anything_is_a_failed_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_PROGRAM", (sys.executable, "-c", "raise SystemExit('it cannot begin')"))
    began = subprocess.Popen

    def ended(*args: object, **options: object) -> "subprocess.Popen[bytes]":
        process = began(*args, **options)  # type: ignore[call-overload]
        process.wait(30)
        return process

    monkeypatch.setattr(subprocess, "Popen", ended)
    spec = Spec(role=Role.APPEND, process="p", incarnation=1, seed="", epoch_ns=0, client={})
    with pytest.raises(CampaignError, match="client p failed: it cannot begin"):
        ClientProcess(spec, tmp_path / "log", lambda line: None).wait(30)


def test_secrets_travel_in_no_command_line(tmp_path: Path) -> None:
    client = {"bootstrap.servers": "127.0.0.1:1", "sasl.password": "hidden"}
    spec = Spec(role=Role.READER, process="r", incarnation=1, seed="", epoch_ns=0, client=client, topics={"t": 1})
    process = ClientProcess(spec, tmp_path / "log", lambda line: None)
    assert b"hidden" not in Path(f"/proc/{process._process.pid}/cmdline").read_bytes()
    assert b"hidden" in msgspec.json.encode(spec)
    process.kill()
