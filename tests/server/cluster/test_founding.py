"""What is one for all brokers of a cluster, where a broker keeps its cache, and which addresses others can tell."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from exacta.cli.app import app
from exacta.front.doors import Door, Endpoint
from exacta.server.cluster import founding
from exacta.server.cluster.addresses import addresses_of
from exacta.server.errors import ServerError
from exacta.server.identity import refuse_all_but_a_cache


def door(front: str, name: str, host: str, advertised: Endpoint | None = None) -> Door:
    return Door(front=front, name=name, endpoint=Endpoint(host, 9), advertised=advertised)


def test_from_one_record_all_brokers_derive_the_same_secrets_and_none_from_another() -> None:
    record = founding.draw()
    first, second, other = founding.read(record), founding.read(record), founding.read(founding.draw())
    assert (first.cluster_id, first.login_secret, first.first_user_token) == (
        second.cluster_id,
        second.login_secret,
        second.first_user_token,
    )
    found = {first.secret, first.login_secret, first.first_user_token.encode()}
    assert len(found) == 3
    assert not found & {other.secret, other.login_secret, other.first_user_token.encode()}
    assert "secret" not in repr(first)


def test_a_record_of_another_version_is_refused() -> None:
    with pytest.raises(ServerError, match="this version cannot read"):
        founding.read(b"[]")


def test_a_log_of_a_later_level_is_refused_and_keeps_its_record() -> None:
    founded = founding.read(founding.draw())
    assert founding.read(founded.record()) == founded
    with pytest.raises(ServerError, match=f"has level {founding.LEVEL + 1}, and this version"):
        founding.read(replace(founded, level=founding.LEVEL + 1).record())


def test_other_brokers_tell_the_advertised_addresses_and_the_web_has_the_host_of_the_others() -> None:
    doors = [door("kafka", "PLAINTEXT", "", Endpoint("one.example", 0)), door("web", "WEB", "0.0.0.0")]
    assert addresses_of(doors) == {"PLAINTEXT": ("one.example", 9), "WEB": ("one.example", 9)}


@pytest.mark.parametrize("front", ["kafka", "pulsar", "web"])
def test_a_door_on_every_address_without_an_advertised_one_is_refused(front: str) -> None:
    with pytest.raises(ServerError, match="the door OPEN listens on every address"):
        addresses_of([door(front, "OPEN", "")])


def test_a_cache_is_no_directory_with_a_log_or_with_anything_else(tmp_path: Path) -> None:
    refuse_all_but_a_cache(tmp_path / "new")
    (tmp_path / "cache").mkdir()
    (tmp_path / "first-user.token").touch()
    refuse_all_but_a_cache(tmp_path)
    (tmp_path / "photos").mkdir()
    with pytest.raises(ServerError, match="holds other files"):
        refuse_all_but_a_cache(tmp_path)
    (tmp_path / "journal").mkdir()
    with pytest.raises(ServerError, match="holds the log of a broker alone"):
        refuse_all_but_a_cache(tmp_path)


def test_the_check_of_a_file_tells_what_a_broker_of_a_cluster_lacks(tmp_path: Path) -> None:
    file = tmp_path / "exacta.toml"
    lines = ['postgres = "postgresql://exacta@127.0.0.1/exacta"', 'listen = ":9092"', 'allow_anonymous = "PLAINTEXT"']
    file.write_text("\n".join([*lines, ""]))
    checked = CliRunner().invoke(app, ["config", "check", str(file)])
    assert checked.exit_code == 1
    assert "the door PLAINTEXT listens on every address, and other brokers must tell clients one" in checked.stderr
    file.write_text(file.read_text() + 'advertise = "one.example:9092"\n')
    assert CliRunner().invoke(app, ["config", "check", str(file)]).exit_code == 0
