"""Secrets in a pipeline file: `${env:NAME}` and `${file:PATH}`.

Models keep the placeholder, so a printed model, plan or mistake cannot contain a secret. The value is resolved where it
is needed, at the last moment; texts that come back, such as errors of a library, pass through `hide`.
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
        self._resolved: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Secrets({len(self._resolved)} resolved)"

    def resolve(self, text: str) -> str:
        """Return the text with the values in it. ConfigError, without any value in its text, if one does not exist."""
        return PLACEHOLDER.sub(lambda found: self._value(found.group(), found.group(1), found.group(2)), text)

    def resolve_address(self, url: str) -> str:
        """Return the address with the values in it, percent-encoded in the user, the password and parameters, so that any character is allowed.

        An address that is a single placeholder is not encoded.
        """
        found = list(PLACEHOLDER.finditer(url))
        begin = url.find("://") + 3
        if begin < 3:
            return self.resolve(url)
        plain = PLACEHOLDER.sub(lambda one: "x" * len(one.group()), url)  # the path of a secret's file has slashes too
        end = begin + len(re.split(r"[/?#]", plain[begin:], maxsplit=1)[0])
        at = plain.rfind("@", begin, end)
        colon = plain.find(":", begin, at) if at >= 0 else -1
        parts: list[str] = []
        done = 0
        for one in found:
            value = self._value(one.group(), one.group(1), one.group(2))
            if begin <= one.start() < at:
                # A single placeholder before the @ may be a user and a password.
                value = self._encoded(value, one.group(), ":" if colon < 0 else "")
            elif "?" in plain[end : one.start()] and plain[one.start() - 1] == "=":
                value = self._encoded(value, one.group(), "")
            parts += [url[done : one.start()], value]
            done = one.end()
        return "".join([*parts, url[done:]])

    def _encoded(self, value: str, placeholder: str, safe: str) -> str:
        encoded = quote(value, safe=safe)
        if encoded:
            self._resolved[encoded] = placeholder
        return encoded

    def hide(self, text: str) -> str:
        """Return the text with the placeholders in place of every value resolved so far."""
        for value, placeholder in sorted(self._resolved.items(), key=lambda pair: -len(pair[0])):
            text = text.replace(value, placeholder)
        return text

    def _value(self, placeholder: str, kind: str, name: str) -> str:
        if kind not in KINDS:
            raise ConfigError(f"{placeholder}: {unknown_among('kind of secret', kind, KINDS, 'env and file')}")
        value = self._from_environment(name) if kind == "env" else self._from_file(placeholder, name)
        if value:
            self._resolved[value] = placeholder
        return value

    def _from_environment(self, name: str) -> str:
        value = self._environment.get(name)
        if value is None:
            raise ConfigError(f"${{env:{name}}}: environment variable {name!r} is not set; set it")
        return value

    def _from_file(self, placeholder: str, name: str) -> str:
        try:
            return (self._folder / name).read_text(encoding="utf-8").removesuffix("\n")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
            raise ConfigError(f"{placeholder}: the file {name!r} cannot be read: {reason}") from None
