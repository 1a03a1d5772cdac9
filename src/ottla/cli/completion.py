"""`ottla completion`: print the completion script of a shell. The scripts are click's."""

from __future__ import annotations

import click

from ottla.cli.options import usage_error

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_OTTLA_COMPLETE"
"""The environment variable by which the shell requests completions from the command."""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes commands and options in a shell."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise usage_error(f"there is no completion for {shell}")
    click.echo(kind(click.get_current_context().find_root().command, {}, "ottla", VARIABLE).source())
