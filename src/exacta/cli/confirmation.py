"""The question that a command puts before it changes what cannot be brought back, and the options that go with it."""

from typing import Annotated

import typer

from exacta.cli.cluster import EXIT_NO

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
OnlyShow = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]


def require_consent(question: str, *, yes: bool, err: bool = False) -> None:
    """Ask unless `yes`, on stderr if `err`: stdout is for JSON then. End the command where the answer is no."""
    if not yes and not typer.confirm(question, err=err):
        raise typer.Exit(EXIT_NO)
