"""Asking before something is destroyed or moved."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ottla.cli.output import echo

F = TypeVar("F", bound=Callable[..., Any])


def yes_option(command: F) -> F:
    """`--yes`: for scripts."""
    return click.option("--yes", "agreed", is_flag=True, help="Do it without asking.")(command)


def ask_at_terminal(plan: Callable[[], str], question: str, *, agreed: bool) -> None:
    """Show what will be done and ask; a script goes on without, as it does with Kafka's own tools."""
    if not agreed and sys.stdin.isatty():
        echo(plan(), err=True)
        ask(question, agreed=False)


def ask(question: str, *, agreed: bool) -> None:
    """End the command unless whoever runs it agrees; where nobody can be asked nothing is done."""
    if agreed:
        return
    if not sys.stdin.isatty():
        raise click.ClickException("nothing was done: nobody can be asked here; add --yes to do it")
    if not click.confirm(question, err=True):
        raise click.ClickException("nothing was done")
