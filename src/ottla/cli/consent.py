"""Confirmation before something is deleted or moved."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ottla.cli.output import echo

F = TypeVar("F", bound=Callable[..., Any])


def yes_option(command: F) -> F:
    """Add `--yes`, for scripts."""
    return click.option("--yes", "agreed", is_flag=True, help="Do not ask for confirmation.")(command)


def confirm_at_terminal(plan: Callable[[], str], question: str, *, agreed: bool) -> None:
    """Show the plan and ask for confirmation at a terminal. Scripts proceed without, as with Kafka's tools."""
    if not agreed and sys.stdin.isatty():
        echo(plan(), err=True)
        confirm(question, agreed=False)


def confirm(question: str, *, agreed: bool) -> None:
    """Raise ClickException unless the user confirms; also if there is no terminal to confirm at and `agreed` is false."""
    if agreed:
        return
    if not sys.stdin.isatty():
        raise click.ClickException("nothing was done: there is no terminal for the confirmation; add --yes")
    if not click.confirm(question, err=True):
        raise click.ClickException("nothing was done")
