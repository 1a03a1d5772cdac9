"""Which context a command speaks to, if any.

A context counts as a whole or not at all: who names an address gets no login of the current context with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ottla.cli.contexts.contexts import ClusterContext, contexts_file, read_contexts

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

CONTEXT_VARIABLE = "OTTLA_CONTEXT"
NAMED = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def chosen_context(
    name: str | None, name_from: ParameterSource | None, address_from: ParameterSource | None, *, file_says: bool
) -> ClusterContext | None:
    """By what was said where: the name of a context, and the address; `file_says` is of `--command-config`."""
    if name is not None and name_from is ParameterSource.COMMANDLINE:
        if address_from is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--context {name} and --bootstrap-server both say where the cluster is; give one")
        return read_contexts(contexts_file()).named(name, "--context")
    if file_says or address_from in NAMED:
        return None
    known = read_contexts(contexts_file())
    if name is not None:
        return known.named(name, CONTEXT_VARIABLE)
    return None if known.current is None else known.by_name[known.current]


def completed(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of contexts that begin so; none where they cannot be read."""
    from click.shell_completion import CompletionItem

    try:
        known: Any = read_contexts(contexts_file()).by_name
    except click.ClickException:
        return []
    return [
        CompletionItem(name, help=each.bootstrap_servers) for name, each in known.items() if name.startswith(incomplete)
    ]
