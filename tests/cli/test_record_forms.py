"""Records as lines: kcat's format strings and JSON on the way out, lines with keys and JSON on the way in."""

import io
import json

import pytest

from exacta.cli.lines import OnATerminal
from exacta.cli.record_formats import WrongFormat, as_json, format_of, unescaped
from exacta.cli.record_lines import Line, NoRecord, Reading
from exacta.client.tail import ReceivedRecord
from exacta.client.topic_writer import NewRecord
from exacta.client.transactions import TopicPartition

AT = TopicPartition("orders", 2)
HEADERS = ((b"n", b"v"), (b"n", None))
RECORD = ReceivedRecord(AT, 17, 1234, False, b"k1", b"value", HEADERS)
EMPTY = ReceivedRecord(AT, 18, 1235, True, None, None, ())


def test_a_format_string_is_kcats():
    every = format_of(r"%t %p %o %T %k %K %s %S %h 100%%\t\x41\n")
    assert every(RECORD) == b"orders 2 17 1234 k1 2 value 5 n=v,n=NULL 100%\tA\n"
    assert every(EMPTY) == b"orders 2 18 1235  -1  -1  100%\tA\n"
    assert format_of("%k=%s", show_null=True)(EMPTY) == b"NULL=NULL"
    assert format_of("ü%s")(RECORD) == "üvalue".encode()


@pytest.mark.parametrize(
    ("text", "why"),
    [("%q", "there is no %q: the tokens are %s"), ("%", "there is no %:"), (r"\q", r"there is no escape \\q")],
)
def test_a_wrong_format_is_refused(text, why):
    with pytest.raises(WrongFormat, match=why):
        format_of(text)


def test_a_delimiter_has_escapes():
    assert unescaped(r"\r\n\0\\\x7f") == b"\r\n\0\\\x7f"


def test_json_has_kcats_names_and_any_bytes():
    told = {"topic": "orders", "partition": 2, "offset": 17, "tstype": "create", "ts": 1234}
    content = {"headers": ["n", "v", "n", None], "key": "k1", "payload": "value"}
    assert json.loads(as_json(RECORD)) == told | content
    assert json.loads(as_json(EMPTY)) == told | {
        "offset": 18,
        "tstype": "logappend",
        "ts": 1235,
        "key": None,
        "payload": None,
    }
    odd = RECORD._replace(key=b"\xff", value="ü\x1b\n".encode(), headers=((b"\xfe", b"\x00"),))
    line = as_json(odd)
    assert (line.count(b"\n"), line.count(b"\x1b")) == (1, 0)
    found = json.loads(line)
    assert (found["key_base64"], found["payload"], found["headers"]) == ("/w==", "ü\x1b\n", [r"\xfe", "\x00"])
    assert "key" not in found


@pytest.mark.parametrize("record", [RECORD, EMPTY, RECORD._replace(key=b"", value=b"\xff\x00")])
def test_json_that_was_written_is_read_back(record):
    headers = tuple((name.decode(), value) for name, value in record.headers)
    read = Reading(json=True).record(Line(1, as_json(record)))
    assert read == NewRecord(record.key, record.value, headers, record.timestamp_ms)


def test_a_line_is_a_value_with_what_the_options_add():
    assert Reading().record(Line(1, b"a:b")) == NewRecord(None, b"a:b")
    assert Reading(key=b"k", headers=(("n", b"v"),)).record(Line(1, b"a")) == NewRecord(b"k", b"a", (("n", b"v"),))
    by_key = Reading(key_delimiter=b"::")
    assert by_key.record(Line(1, b"a::b::c")) == NewRecord(b"a", b"b::c")
    assert by_key.record(Line(1, b"a:b")) == NewRecord(None, b"a:b")
    assert by_key.record(Line(1, b"::")) == NewRecord(b"", b"")
    assert by_key._replace(empty_is_null=True).record(Line(1, b"a::")) == NewRecord(b"a", None)


def test_json_of_other_programs_is_read():
    read = Reading(json=True, headers=(("from", b"here"),)).record
    line = Line(1, b'{"payload": {"apples": 42}, "key": 7, "headers": {"h": "v", "none": null}}')
    headers = (("from", b"here"), ("h", b"v"), ("none", None))
    assert read(line) == NewRecord(b"7", b'{"apples": 42}', headers)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"{", "line 3 is no JSON: "),
        (b"\xff", "line 3 is no JSON: "),
        (b"7", "line 3 is no JSON object with a payload"),
        (b'{"key": "k"}', "line 3 is no JSON object with a payload"),
        (b'{"payload": "x", "ts": "now"}', "line 3: ts is no number"),
        (b'{"payload": "x", "ts": true}', "line 3: ts is no number"),
        (b'{"payload": "x", "headers": ["a"]}', "line 3: headers is neither"),
        (b'{"payload": "x", "headers": 7}', "line 3: headers is neither"),
        (b'{"payload_base64": "*"}', "line 3: "),
        (b'{"payload_base64": 7}', "line 3: "),
        (b'{"payload": "\\ud800"}', "line 3: "),
        (b"[" * 100_000, "line 3 is no JSON: "),
    ],
)
def test_what_is_no_record_is_told_with_its_line(text, why):
    with pytest.raises(NoRecord, match=f"^{why}"):
        Reading(json=True).record(Line(3, text))


def test_a_terminal_obeys_nothing():
    out = io.BytesIO()
    terminal = OnATerminal(out)
    terminal.write("ü\t\x1b[2J\x9b".encode() + b"\xff\n")
    assert out.getvalue().decode() == "ü\t\\x1b[2J\\x9b\\xff\n"
