"""Where one of a mirror's two clusters is, and how to get in."""

from __future__ import annotations

from typing import Any

from ottla.cli.contexts.contexts import contexts_file, read_contexts
from ottla.cli.options import properties_of, senseless, settings_of_context


def mirror_side(side: str, server: str | None, context: str | None, file: str | None) -> dict[str, Any]:
    """Settings of its clients; a server that is named wins over the file's."""
    if server is not None and context is not None:
        raise senseless(f"--{side}-server and --{side}-context both say where the {side} is; give one")
    settings: dict[str, Any] = {}
    if context is not None:
        known = read_contexts(contexts_file()).named(context, f"--{side}-context")
        settings = settings_of_context(known, with_file=file is None)
        server = known.bootstrap_servers
    settings.update(properties_of(f"--{side}-config", file))
    if server is not None:
        settings["bootstrap.servers"] = server
    if "bootstrap.servers" not in settings:
        raise senseless(
            f"say where the {side} is: --{side}-server HOST:PORT, --{side}-context NAME or --{side}-config FILE"
        )
    return settings
