"""Select the context of a command, if any.

A context is used as a whole or not at all: with an explicit address, no login of the current context is used.
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
    """Return the context from `--context`, OTTLA_CONTEXT or `ottla context use`, or None if the address comes from elsewhere.

    `file_says` is true if `--command-config` sets the address.
    """
    if name is not None and name_from is ParameterSource.COMMANDLINE:
        if address_from is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"--context {name} and --bootstrap-server both give the address of the cluster: give only one of them"
            )
        return read_contexts(contexts_file()).get(name, "--context")
    if file_says or address_from in NAMED:
        return None
    known = read_contexts(contexts_file())
    if name is not None:
        return known.get(name, CONTEXT_VARIABLE)
    return None if known.current is None else known.by_name[known.current]


def complete_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of contexts with this prefix; none if the file cannot be read."""
    from click.shell_completion import CompletionItem

    try:
        known: Any = read_contexts(contexts_file()).by_name
    except click.ClickException:
        return []
    return [
        CompletionItem(name, help=each.bootstrap_servers) for name, each in known.items() if name.startswith(incomplete)
    ]
