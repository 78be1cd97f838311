"""The reference page of the command line, made from the commands: `python -m website.command_line` prints it.

Theory of operation. Typer's commands are a tree, which is walked; `exacta serve` has a parser of its own, since it must
start in a blink. What a command says of itself by `--help` is what stands here. Options that several commands share
stand once, at the head of the page.

Typer brings its own copy of click, so the classes of commands and parameters are not asked for.
"""

import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

import typer

from exacta.cli.app import app
from exacta.cli.serve import _parser

SHARED = 5
"""An option that so many commands have, with the same words, stands at the head of the page."""

_HEAD = """# Command line

`make docs` writes this page from the commands themselves; do not edit it. `--help` behind a command says the same.
[Everyday commands](../how-to/commands.md) shows how they are used, which cluster is meant, and the exit codes.

Words in capitals stand for values. `…` behind one says that there may be several.

## Options of several commands
"""

_ROOT = """
## `exacta`
"""

_SERVE = """
## `exacta serve`

Serve a transactional log to every client of Kafka and of Pulsar. [Configuration](configuration.md) lists what `--set`
and `--config` take.
"""

_TAIL = """
`--install-completion` and `--show-completion` are typer's: they install or print completion for the shell."""


def page() -> str:
    """Return the page as Markdown."""
    root: Any = typer.main.get_command(app)
    commands = [(name, each) for name, each in walk(root, "exacta") if name != "exacta serve"]
    seen = Counter(_identity(each) for _, command in commands for each in _options(command))
    shared = {identity for identity, count in seen.items() if count >= SHARED}
    shown = {_identity(each): each for _, command in commands for each in _options(command)}
    parts = [_HEAD, *_table(shown[identity] for identity in seen if identity in shared)]
    parts += [_ROOT, root.help, "", *_table(_options(root)), _TAIL, _SERVE, *_serve()]
    for name, command in commands:
        parts += ["", *_section(name, command, shared)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)) + "\n"


def walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield every command that can be called, or that has commands, with its name from `exacta` on."""
    for each, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            yield f"{name} {each}", below
            yield from walk(below, f"{name} {each}")


def _section(name: str, command: Any, shared: set[str]) -> Iterator[str]:
    level = "#" * len(name.split())
    yield from (f"{level} `{name}`", "", inspect.cleandoc(command.help))
    if getattr(command, "commands", {}):
        return
    arguments = [each for each in command.params if each.param_type_name == "argument" and not each.hidden]
    usage = " ".join(["[OPTIONS]", *(_argument(each) for each in arguments)])
    yield from ("", f"Usage: `{name} {usage}`", "")
    own = [each for each in _options(command) if _identity(each) not in shared]
    yield from _table([*arguments, *own])
    if also := [f"`{each.opts[0]}`" for each in _options(command) if _identity(each) in shared]:
        yield from ("", f"Also {', '.join(also)}.")


def _options(command: Any) -> list[Any]:
    """Return the options of a command that it has by itself and does not hide."""
    completion = {"--install-completion", "--show-completion"}
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    return [each for each in options if not completion & {*each.opts}]


def _identity(option: Any) -> str:
    """Return what makes two options of different commands the same one."""
    return f"{option.opts} {option.help} {_value(option)}"


def _table(parameters: Iterable[Any]) -> Iterator[str]:
    rows = [(_name(each), _meaning(each)) for each in parameters]
    if rows:
        yield from _rows(rows)


def _rows(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield from ("| | |", "|---|---|")
    for name, meaning in rows:
        cells = [cell.replace("|", "\\|").replace("\n", " ") for cell in (name, meaning)]
        yield f"| {cells[0]} | {cells[1]} |"


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{_argument(parameter)}`"
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    value = _value(parameter)
    return f"{names} `{value}`" if value else names


def _argument(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper()).replace("...", "…")


def _value(option: Any) -> str:
    """Return what stands for the option's value; nothing for a switch."""
    if option.is_flag:
        return ""
    if isinstance(option.default, Enum):
        return "|".join(str(each.value) for each in type(option.default))
    return str(option.metavar or ("N" if isinstance(option.default, int) else "VALUE"))


def _meaning(parameter: Any) -> str:
    text = parameter.help or ""
    default = parameter.default.value if isinstance(parameter.default, Enum) else parameter.default
    if default is None or getattr(parameter, "is_flag", False) or not parameter.show_default:
        return text
    return f"{text} Default: `{default}`."


def _serve() -> Iterator[str]:
    rows = []
    for action in _parser()._actions:
        value = action.metavar or ("|".join(action.choices) if action.choices else "")
        names = ", ".join(f"`{name}`" for name in reversed(action.option_strings))
        text = str(action.help)
        rows.append((f"{names} `{value}`" if value else names, f"{text[0].upper()}{text[1:]}."))
    return _rows(rows)


if __name__ == "__main__":
    sys.stdout.write(page())
