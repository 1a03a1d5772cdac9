"""Parse `sasl.jaas.config`, the line with the credentials of Java clients.

org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="…";

Pure. Errors never quote the line, which contains secrets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ottla.errors import ConfigError

PACKAGE = "org.apache.kafka.common.security."
MODULES = {
    PACKAGE + "plain.PlainLoginModule": ("PLAIN",),
    PACKAGE + "scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    PACKAGE + "oauthbearer.OAuthBearerLoginModule": ("OAUTHBEARER",),
    "com.sun.security.auth.module.Krb5LoginModule": ("GSSAPI",),
}
FLAGS = ("required", "requisite", "sufficient", "optional")
TOKEN = re.compile(
    r"""\s*(?:
        "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>(?:[^'\\]|\\.)*)' | (?P<sign>[=;]) | (?P<word>[^\s"'=;]+)
    )""",
    re.VERBOSE | re.DOTALL,
)
FORM = (
    'write it as \'org.apache.kafka.common.security.plain.PlainLoginModule required username="…" password="…";\', '
    "or set sasl.username and sasl.password instead"
)


class JaasEntry(NamedTuple):
    """One login module with its options."""

    module: str
    options: Mapping[str, str]


def parse_jaas(line: str) -> JaasEntry:
    """Return the only entry of the line; raise ConfigError about its form, without its content."""
    words = split_tokens(line)
    if len(words) < 3 or words[0][0] or words[1] != (False, words[1][1]) or words[1][1].lower() not in FLAGS:
        raise ConfigError(f"sasl.jaas.config must start with a login module and `required`; {FORM}")
    if words[-1] != (False, ";"):
        raise ConfigError(f"sasl.jaas.config must end with a semicolon; {FORM}")
    if (False, ";") in words[:-1]:
        raise ConfigError("sasl.jaas.config has several login modules; a client uses only one: remove the others")
    return JaasEntry(words[0][1], options_of(words[2:-1]))


def options_of(words: list[tuple[bool, str]]) -> dict[str, str]:
    """Return the `name=value` options; each name may occur once."""
    options: dict[str, str] = {}
    if len(words) % 3:
        raise ConfigError(f'sasl.jaas.config: its options must be name="value", separated by spaces; {FORM}')
    for place in range(0, len(words), 3):
        name, sign, value = words[place : place + 3]
        if sign != (False, "=") or name[0] or name[1] in "=;" or value == (False, "="):
            raise ConfigError(f'sasl.jaas.config: its options must be name="value", separated by spaces; {FORM}')
        if name[1] in options:
            raise ConfigError("sasl.jaas.config has an option twice; give it once")
        options[name[1]] = value[1]
    return options


def split_tokens(line: str) -> list[tuple[bool, str]]:
    """Return words and signs, each with true if it was quoted."""
    found: list[tuple[bool, str]] = []
    position, end = 0, len(line.rstrip())
    while position < end:
        match = TOKEN.match(line, position, end)
        if match is None:
            raise ConfigError(f"sasl.jaas.config has a quotation mark without its other half; {FORM}")
        position = match.end()
        quoted = match["double"] if match["double"] is not None else match["single"]
        if quoted is not None:
            found.append((True, re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)))
        else:
            found.append((False, match["sign"] or match["word"]))
    return found


def options_for(mechanism: str, line: str) -> Mapping[str, str]:
    """Return the options for a mechanism; raise ConfigError if the module is for another one."""
    entry = parse_jaas(line)
    mechanisms = MODULES.get(entry.module)
    if mechanisms is None:
        known = ", ".join(name.rpartition(".")[2] for name in MODULES)
        raise ConfigError(f"sasl.jaas.config has an unknown login module: expected one of {known}")
    if mechanism not in mechanisms:
        raise ConfigError(
            f"sasl.jaas.config is for sasl.mechanism = {' or '.join(mechanisms)}, but sasl.mechanism is {mechanism}: change one of them"
        )
    return entry.options
