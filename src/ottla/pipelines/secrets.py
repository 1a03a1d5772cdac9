"""Secrets in a pipeline file: `${env:NAME}` and `${file:PATH}`.

Models keep the text with the placeholder in it, so that nothing that prints a model, a plan or a mistake can print a
secret. What needs the value asks here at the last moment, and what others say of it afterwards comes back through `hidden`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from ottla.config import unknown_among
from ottla.errors import ConfigError

PLACEHOLDER = re.compile(r"\$\{(\w+):([^}]*)\}")
KINDS = ("env", "file")


class Secrets:
    """The values behind placeholders; relative paths are relative to `folder`."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self._environment = environment
        self._folder = folder
        self._told: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Secrets({len(self._told)} told)"

    def resolve(self, text: str) -> str:
        """The text with its values; ConfigError, which has none of them, where one is not there."""
        return PLACEHOLDER.sub(lambda found: self._value(found.group(), found.group(1), found.group(2)), text)

    def resolve_address(self, url: str) -> str:
        """The address with its values; those of a user, a password or a parameter are percent-encoded, so that any character may be in them.

        An address that is one placeholder is taken as it is.
        """
        found = list(PLACEHOLDER.finditer(url))
        begin = url.find("://") + 3
        if begin < 3:
            return self.resolve(url)
        plain = PLACEHOLDER.sub(lambda one: "x" * len(one.group()), url)  # a name of a file has slashes of its own
        end = begin + len(re.split(r"[/?#]", plain[begin:], maxsplit=1)[0])
        at = plain.rfind("@", begin, end)
        colon = plain.find(":", begin, at) if at >= 0 else -1
        parts: list[str] = []
        done = 0
        for one in found:
            value = self._value(one.group(), one.group(1), one.group(2))
            if begin <= one.start() < at:
                # Alone before the @, it may be a user and a password.
                value = self._encoded(value, one.group(), ":" if colon < 0 else "")
            elif "?" in plain[end : one.start()] and plain[one.start() - 1] == "=":
                value = self._encoded(value, one.group(), "")
            parts += [url[done : one.start()], value]
            done = one.end()
        return "".join([*parts, url[done:]])

    def _encoded(self, value: str, placeholder: str, safe: str) -> str:
        encoded = quote(value, safe=safe)
        if encoded:
            self._told[encoded] = placeholder
        return encoded

    def hidden(self, text: str) -> str:
        """The text with placeholders again where it has values that were told."""
        for value, placeholder in sorted(self._told.items(), key=lambda told: -len(told[0])):
            text = text.replace(value, placeholder)
        return text

    def _value(self, placeholder: str, kind: str, name: str) -> str:
        if kind not in KINDS:
            raise ConfigError(f"{placeholder}: {unknown_among('kind of secret', kind, KINDS, 'env and file')}")
        value = self._from_environment(name) if kind == "env" else self._from_file(placeholder, name)
        if value:
            self._told[value] = placeholder
        return value

    def _from_environment(self, name: str) -> str:
        value = self._environment.get(name)
        if value is None:
            raise ConfigError(f"${{env:{name}}}: there is no variable {name!r} in the environment; set it")
        return value

    def _from_file(self, placeholder: str, name: str) -> str:
        try:
            return (self._folder / name).read_text(encoding="utf-8").removesuffix("\n")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
            raise ConfigError(f"{placeholder}: the file {name!r} cannot be read: {reason}") from None
