"""The `exacta` command.

`exacta serve` must be listening in a blink, so this module finds it before typer and rich (0.1 s together) are
imported. Every other command is in `app.py`.
"""

import gc
import sys


def main() -> None:
    """Run the command line and exit with its code: 0, 1 where something failed, 2 where it was called wrongly."""
    try:
        _run(sys.argv[1:])
    except ImportError as error:
        if error.name != "exacta.posix":
            raise
        sys.stderr.write(f"exacta: {error}\n")
        sys.exit(1)


def _run(arguments: list[str]) -> None:
    if arguments[:1] == ["serve"]:
        gc.disable()  # nothing of what is imported is garbage; the server enables it again
        from exacta.cli.serve import run

        sys.exit(run(arguments[1:]))
    from exacta.cli.app import app

    app(prog_name="exacta")
