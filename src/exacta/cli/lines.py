"""Lines on a terminal about what clients have named: a name may hold any character, and is shown on its line."""

import typer


def one_line(text: str) -> str:
    """Return a text with every character escaped that a terminal would not print: ends of lines, control sequences."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def say(line: str, *, err: bool = False) -> None:
    """Print one line on stdout, or on stderr."""
    typer.echo(one_line(line), err=err)
