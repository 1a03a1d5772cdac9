"""Clusters by name, kept in a file: where each is, and with which settings one gets in. Secrets stay elsewhere.

The file is JSON, as nobody is asked to write it: `{"current": "prod", "contexts": {"prod": {"bootstrap.servers": …}}}`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from msgspec import Struct, field
from msgspec.structs import replace

from ottla.config import unknown

ADDRESS = "bootstrap.servers"
COMMAND_CONFIG = "command.config"
"""Where in a context's object the path of its properties stands."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class ClusterContext(Struct, frozen=True):
    """A cluster that has a name."""

    name: str
    bootstrap_servers: str
    command_config: str | None = None
    """A properties file, by its whole path."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """By Kafka's names; secrets as references."""


class Contexts(Struct, frozen=True):
    """All of them, and which one is used where nothing else says where the cluster is."""

    by_name: Mapping[str, ClusterContext] = field(default_factory=dict)
    current: str | None = None

    def named(self, name: str, where: str) -> ClusterContext:
        """The one of that name; a mistake of whoever named it, at `where`, if there is none."""
        if name not in self.by_name:
            told = unknown("context", name, self.by_name)
            if not told.endswith("?"):
                told += f"; there are {', '.join(self.by_name)}" if self.by_name else "; there are none yet"
            raise click.ClickException(f"{where}: {told}")
        return self.by_name[name]

    def having(self, context: ClusterContext) -> Contexts:
        return replace(self, by_name={**self.by_name, context.name: context})

    def without(self, name: str) -> Contexts:
        left = {each: context for each, context in self.by_name.items() if each != name}
        return Contexts(left, None if self.current == name else self.current)


def contexts_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Where they are kept; by the rules of the XDG a folder that is no whole path does not count."""
    given = environment.get("XDG_CONFIG_HOME", "")
    folder = Path(given) if os.path.isabs(given) else Path.home() / ".config"
    return folder / "ottla" / "contexts.json"


def read_contexts(file: Path) -> Contexts:
    """What is kept there; nothing, where there is no file."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise click.ClickException(f"the contexts in {file} cannot be read: {error.strerror}") from None
    import json  # for who has contexts

    try:
        return contexts_of(json.loads(data.decode()))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        told = f"no {error} in it" if isinstance(error, KeyError) else error
        raise click.ClickException(
            f"the contexts in {file} are damaged ({told}): mend the file, or delete it and add them again"
        ) from None


def contexts_of(kept: Any) -> Contexts:
    """The contexts in the file's object; ValueError, TypeError, KeyError or AttributeError where it is another."""
    found = {name: context_of(name, fields) for name, fields in kept["contexts"].items()}
    current = kept["current"]
    if current is not None and current not in found:
        raise ValueError(f"the current one, {current!r}, is not among them")
    return Contexts(found, current)


def context_of(name: str, fields: Mapping[str, Any]) -> ClusterContext:
    settings = dict(fields.get("settings", {}))
    for key, value in ((ADDRESS, fields[ADDRESS]), *settings.items()):
        if not isinstance(value, str):
            raise TypeError(f"{key} of {name!r} is no text")
    file = fields.get(COMMAND_CONFIG)
    if not isinstance(file, str | None):
        raise TypeError(f"{COMMAND_CONFIG} of {name!r} is no text")
    return ClusterContext(name, fields[ADDRESS], file, settings)


def write_contexts(file: Path, contexts: Contexts) -> None:
    """Put them in place of what was there, at once, for nobody else to read."""
    import json
    import tempfile  # which costs a millisecond, and most commands write none

    text = json.dumps(plain(contexts), ensure_ascii=False, indent=2) + "\n"
    draft = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd, draft = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)  # which only its owner may read
        with open(fd, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, file)
    except OSError as error:
        if draft is not None:
            Path(draft).unlink(missing_ok=True)
        raise click.ClickException(
            f"the contexts cannot be kept in {file}: {error.strerror}; make the folder one that you may write to, or name "
            "another with XDG_CONFIG_HOME"
        ) from None


def plain(contexts: Contexts) -> dict[str, Any]:
    """What the file has, as JSON has it."""
    kept = {}
    for name, context in contexts.by_name.items():
        fields: dict[str, Any] = {ADDRESS: context.bootstrap_servers}
        if context.command_config is not None:
            fields[COMMAND_CONFIG] = context.command_config
        if context.settings:
            fields["settings"] = dict(context.settings)
        kept[name] = fields
    return {"current": contexts.current, "contexts": kept}
