"""Print the page of all commands, as Markdown.

This module owns the form of the page. What it says is taken from the commands themselves, so that page and `--help`
agree; typer's own pages would change with its version, and shorten what a command does.
"""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import typer

from exacta.cli.app import app

_HEAD = """# Commands

All commands with all of their options, as `--help` prints them. [Everyday commands](../how-to/commands.md) shows them
at work, and says which cluster a command takes and what its exit code means.

Each command that asks a cluster takes `--bootstrap-server HOST:PORT,…` (`-b`) and `--config FILE` (`-F`,
`--command-config`). The tables leave these two out.
"""

_OF_ALL = ("--bootstrap-server", "--config")
"""The options that many commands have, which are told once."""


def page() -> str:
    """Return the page."""
    root = typer.main.get_command(app)
    return "\n".join([_HEAD, *_commands(root, "exacta", 2)])


def _commands(group: Any, path: str, level: int) -> Iterator[str]:
    """Yield a section for each command of a group, by their names."""
    for name, command in sorted(_below(group).items()):
        yield f"{'#' * level} `{path} {name}`\n"
        yield from _section(command, f"{path} {name}")
        yield from _commands(command, f"{path} {name}", level + 1)


def _section(command: Any, path: str) -> Iterator[str]:
    yield _prose(command.help)
    if _below(command) or path == "exacta serve":  # which has a parser of its own
        return
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    called = " ".join([path, "[OPTIONS]", *map(_argument, arguments)])
    yield f"`{called}`\n"
    rows = [f"| `{each.metavar or each.name.upper()}` | {_cell(each.help)} | |" for each in arguments]
    options = [each for each in command.params if each.param_type_name == "option"]
    own = [each for each in options if each.opts[0] not in ("--help", *_OF_ALL)]
    rows += [f"| {_names(each)} | {_cell(each.help)} | {_default(each)} |" for each in own]
    if rows:  # a table without rows is none to every reader of Markdown
        yield from ("| argument or option | what it means | default |", "|---|---|---|", *rows, "")


def _below(command: Any) -> Mapping[str, Any]:
    commands: Mapping[str, Any] = getattr(command, "commands", {})
    return commands


def _argument(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return f"{name}..." if argument.nargs == -1 else name


def _names(option: Any) -> str:
    """Return an option with its other names, and with what it takes."""
    choices = "|".join(type(option.default)) if isinstance(option.default, StrEnum) else ""
    takes = "" if option.is_flag else f" {option.metavar or choices or 'N'}"
    names: list[str] = option.opts + option.secondary_opts
    return ", ".join([f"`{names[0]}{takes}`".replace("|", "\\|"), *(f"`{each}`" for each in names[1:])])


def _default(option: Any) -> str:
    shown = "" if option.default in (None, False) or option.is_flag else str(option.default)
    return f"`{shown}`" if shown else ""


def _prose(text: str) -> str:
    """Return a docstring as paragraphs."""
    return "\n\n".join(" ".join(each.split()) for each in re.split(r"\n\s*\n", text.strip())) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
