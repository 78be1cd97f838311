"""What an address of PostgreSQL or of an object store may be, and that no line about one tells a secret."""

import pytest

from exacta.store_addresses import objects_address, postgres_address, problem_of_objects, problem_of_postgres


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("postgresql://exacta@127.0.0.1/logs", [("127.0.0.1", 5432)]),
        ("postgres://localhost:5433/logs?sslmode=disable", [("localhost", 5433)]),
        ("postgresql://[::1]:7,127.0.0.2/logs", [("::1", 7), ("127.0.0.2", 5432)]),
        ("postgresql://exacta@/logs?host=/run/postgresql", [("/run/postgresql", 5432)]),
        ("postgresql:///logs?host=/a,/b&port=5432,5433", [("/a", 5432), ("/b", 5433)]),
        ("postgresql://%2Frun%2Fpostgresql/logs", [("/run/postgresql", 5432)]),
    ],
)
def test_server_on_this_machine_needs_no_tls(url: str, hosts: list[tuple[str, int]]):
    assert postgres_address(url) == (url, hosts)
    assert problem_of_postgres(url) == ""


@pytest.mark.parametrize(
    ("url", "completed"),
    [
        ("postgresql://db.example/logs", "postgresql://db.example/logs?sslmode=verify-full"),
        ("postgresql://localhost,db.example/logs", "postgresql://localhost,db.example/logs?sslmode=verify-full"),
        (
            "postgresql://10.0.0.1/logs?sslrootcert=/ca.pem",
            "postgresql://10.0.0.1/logs?sslrootcert=/ca.pem&sslmode=verify-full",
        ),
        ("postgresql://10.0.0.1/logs?sslmode=require", "postgresql://10.0.0.1/logs?sslmode=require"),
    ],
)
def test_server_beyond_this_machine_is_reached_by_tls(url: str, completed: str):
    assert postgres_address(url).url == completed


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("mysql://a/b", "postgres is not a URL of the form postgresql://user@host:5432/database"),
        ("db.example", "postgres is not a URL of the form postgresql://user@host:5432/database"),
        ("postgresql://[::1/logs", "postgres is not a URL"),
        ("postgresql:///logs", "postgres names no host"),
        ("postgresql://a:x/logs", "postgres has a port that is no number from 1 to 65535"),
        ("postgresql://a:70000/logs", "postgres has a port that is no number from 1 to 65535"),
        ("postgresql:///logs?host=/a,/b&port=1,2,3", "postgres names other numbers of hosts and ports"),
        ("postgresql://a/logs?options=-csearch_path%3Dx", "postgres sets 'options', which the broker sets itself"),
        (
            "postgresql://db.example/logs?sslmode=prefer",
            "postgres asks for sslmode=prefer: beyond this machine it must be one of require, verify-ca, verify-full",
        ),
    ],
)
def test_what_is_wrong_with_a_server_is_told_in_a_line(url: str, problem: str):
    assert problem_of_postgres(url) == problem


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://exacta:hush@localhost/logs",
        "postgresql://exacta:hu/sh@localhost/logs",
        "postgresql://localhost/logs?password=hush",
        "postgresql://localhost/logs?sslpassword=hush",
        "postgresql://exacta:@localhost/logs",
    ],
)
def test_password_in_the_address_is_refused_and_not_repeated(url: str):
    problem = problem_of_postgres(url)
    assert problem.startswith("postgres ")
    assert "hu" not in problem


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("s3://bucket", ("s3", "bucket", "", {})),
        ("s3://bucket/a/b/", ("s3", "bucket", "a/b", {})),
        ("gs://bucket/a", ("gs", "bucket", "a", {})),
        ("az://container/a?account=exacta", ("az", "container", "a", {"account": "exacta"})),
        ("s3://b?endpoint=http://127.0.0.1:7070", ("s3", "b", "", {"endpoint": "http://127.0.0.1:7070"})),
        (
            "s3://b?endpoint=https://store.example&region=eu",
            ("s3", "b", "", {"endpoint": "https://store.example", "region": "eu"}),
        ),
    ],
)
def test_stores(url: str, parts: tuple[object, ...]):
    assert objects_address(url) == parts
    assert problem_of_objects(url) == ""


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("/tmp/objects", "is not a URL of the form s3://bucket/prefix, gs://bucket/prefix or az://container/prefix"),
        ("file:///tmp/objects", "names files: what is put there is not durable, and other brokers do not see it"),
        ("s3:///prefix", "names no bucket"),
        ("s3://key:hush@bucket", "holds a user or a secret: put the keys into the environment or a file"),
        ("s3://key:hu/sh@bucket", "holds a user or a secret: put the keys into the environment or a file"),
        (
            "s3://b?secret_access_key=hush",
            "sets 'secret_access_key', where only endpoint, region, account can be set: keys do not stand in it",
        ),
        (
            "s3://b?endpoint=http://store.example",
            "has an endpoint without TLS: beyond this machine it must begin with https://",
        ),
        (
            "s3://b?endpoint=https://key:hush@store.example",
            "holds a user or a secret in its endpoint: put the keys into the environment or a file",
        ),
    ],
)
def test_what_is_wrong_with_a_store_is_told_in_a_line(url: str, problem: str):
    assert problem_of_objects(url) == f"objects {problem}"
