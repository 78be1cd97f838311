"""The syntax of `.properties` files, as java.util.Properties reads it."""

from exacta.properties import entries, parse_properties


def test_keys_end_at_an_equals_a_colon_or_a_space() -> None:
    assert parse_properties("a=1\nb : 2\n  c 3\nd= x = y\n") == {"a": "1", "b": "2", "c": "3", "d": "x = y"}


def test_comments_and_blank_lines_say_nothing_and_a_later_key_wins() -> None:
    assert parse_properties("# a=1\n! b=2\n\na=3\na=4") == {"a": "4"}


def test_a_backslash_goes_on_with_the_next_line_and_escapes() -> None:
    assert parse_properties("a=one,\\\n    two\nb\\ c=\\u0041\\n") == {"a": "one,two", "b c": "A\n"}


def test_an_entry_has_the_number_of_its_first_line() -> None:
    assert list(entries("\na=1,\\\n2\nb\nc=")) == [(2, "a", "1,2"), (4, "b", None), (5, "c", "")]


def test_only_javas_ends_of_lines_and_blanks_are_any() -> None:
    assert parse_properties("a=1\r\nb=2\rc=\x852\u2028\x1c\n\f d=\xa0e") == {
        "a": "1",
        "b": "2",
        "c": "\x852\u2028\x1c",
        "d": "\xa0e",
    }
