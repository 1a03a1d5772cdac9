"""Named clusters, stored in a file: the addresses and settings of each. Secrets are stored elsewhere.

The file is JSON and written only by commands: `{"current": "prod", "contexts": {"prod": {"bootstrap.servers": …}}}`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct, field
from msgspec.structs import replace

from ottla.config import unknown

if TYPE_CHECKING:
    from pathlib import Path

ADDRESS = "bootstrap.servers"
COMMAND_CONFIG = "command.config"
"""The key of a context's object that holds the path of its properties file."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class ClusterContext(Struct, frozen=True):
    """The address and settings of a named cluster."""

    name: str
    bootstrap_servers: str
    command_config: str | None = None
    """The absolute path of a properties file."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings by Kafka's names; secrets as references."""


class Contexts(Struct, frozen=True):
    """All contexts, and the name of the one that is used by default."""

    by_name: Mapping[str, ClusterContext] = field(default_factory=dict)
    current: str | None = None

    def get(self, name: str, where: str) -> ClusterContext:
        """Return the context of that name; raise ClickException with `where` in its message if there is none."""
        if name not in self.by_name:
            problem = unknown("context", name, self.by_name)
            if not problem.endswith("?"):
                problem += f"; there are {', '.join(self.by_name)}" if self.by_name else "; there are none yet"
            raise click.ClickException(f"{where}: {problem}")
        return self.by_name[name]

    def with_context(self, context: ClusterContext) -> Contexts:
        return replace(self, by_name={**self.by_name, context.name: context})

    def without(self, name: str) -> Contexts:
        left = {each: context for each, context in self.by_name.items() if each != name}
        return Contexts(left, None if self.current == name else self.current)


def contexts_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the file. A relative XDG_CONFIG_HOME is ignored, as the XDG specification demands."""
    from pathlib import Path  # with --bootstrap-server no command needs the file

    given = environment.get("XDG_CONFIG_HOME", "")
    folder = Path(given) if os.path.isabs(given) else Path.home() / ".config"
    return folder / "ottla" / "contexts.json"


def read_contexts(file: Path) -> Contexts:
    """Read the contexts from a file; return no contexts if it does not exist."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise click.ClickException(f"cannot read the contexts in {file}: {error.strerror}") from None
    import json  # imported only if there are contexts

    try:
        return contexts_of(json.loads(data.decode()))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        problem = f"{error} is missing" if isinstance(error, KeyError) else error
        raise click.ClickException(
            f"the contexts in {file} are damaged ({problem}): repair the file, or delete it and add the contexts again"
        ) from None


def contexts_of(kept: Any) -> Contexts:
    """Return the contexts of the parsed file.

    Raises ValueError, TypeError, KeyError or AttributeError if it has another structure.
    """
    found = {name: context_of(name, fields) for name, fields in kept["contexts"].items()}
    current = kept["current"]
    if current is not None and current not in found:
        raise ValueError(f"the current context {current!r} is not defined")
    return Contexts(found, current)


def context_of(name: str, fields: Mapping[str, Any]) -> ClusterContext:
    settings = dict(fields.get("settings", {}))
    for key, value in ((ADDRESS, fields[ADDRESS]), *settings.items()):
        if not isinstance(value, str):
            raise TypeError(f"{key} of {name!r} is not a string")
    file = fields.get(COMMAND_CONFIG)
    if not isinstance(file, str | None):
        raise TypeError(f"{COMMAND_CONFIG} of {name!r} is not a string")
    return ClusterContext(name, fields[ADDRESS], file, settings)


def write_contexts(file: Path, contexts: Contexts) -> None:
    """Replace the file atomically; only its owner may read it."""
    import json
    import tempfile  # costs a millisecond, and most commands write no contexts

    text = json.dumps(to_plain(contexts), ensure_ascii=False, indent=2) + "\n"
    draft = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd, draft = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)  # only its owner may read it
        with open(fd, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, file)
    except OSError as error:
        if draft is not None:
            with suppress(FileNotFoundError):
                os.unlink(draft)
        raise click.ClickException(
            f"cannot write the contexts to {file}: {error.strerror}; make the folder writable, or choose "
            "another with XDG_CONFIG_HOME"
        ) from None


def to_plain(contexts: Contexts) -> dict[str, Any]:
    """Return the content of the file as plain JSON values."""
    kept = {}
    for name, context in contexts.by_name.items():
        fields: dict[str, Any] = {ADDRESS: context.bootstrap_servers}
        if context.command_config is not None:
            fields[COMMAND_CONFIG] = context.command_config
        if context.settings:
            fields["settings"] = dict(context.settings)
        kept[name] = fields
    return {"current": contexts.current, "contexts": kept}
