"""Principals of Kerberos as users: `alice@REALM` is alice, by rules (`sasl.kerberos.principal.to.local.rules`). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ottla.errors import ConfigError

SETTING = "sasl.kerberos.principal.to.local.rules"
PRINCIPAL = re.compile(r"([^/@\\\s]+)(?:/([^/@\\\s]+))?@([^/@\\\s]+)")
"""A principal as in Kafka: a name, an optional host, and the realm. Further parts and escaped characters are rejected."""
RULE = re.compile(r"RULE:\[(\d):([^\]]*)\](?:\(([^)]*)\))?(?:s/([^/]*)/([^/]*)/(g?))?/?([LU]?)")
DEFAULT = re.compile(r"DEFAULT/?([LU]?)")


class LocalNameRule(NamedTuple):
    """A rule: the principals that it matches, and the resulting name."""

    parts: int
    """The number of parts before the realm; 0: any number, in this machine's realm."""
    form: str
    """The form of the name to match, with `$0` for the realm, `$1` and `$2` for the parts."""
    fits: re.Pattern[str] | None
    searched: re.Pattern[str] | None
    replacement: str
    everywhere: bool
    case: str


def read_local_rules(texts: Sequence[str]) -> list[LocalNameRule]:
    """Return the rules of the setting. Raise ConfigError if one is malformed."""
    return [read_local_rule(text.strip()) for text in texts or ("DEFAULT",)]


def read_local_rule(text: str) -> LocalNameRule:
    if (default := DEFAULT.fullmatch(text)) is not None:
        return LocalNameRule(0, "$1", None, None, "", False, default[1])
    found = RULE.fullmatch(text)
    if found is None:
        raise ConfigError(
            f"{SETTING} = {text!r}: must be DEFAULT or RULE:[n:form](pattern)s/pattern/replacement/ with g, L or U behind it"
        )
    try:
        fits, searched = (None if each is None else re.compile(each) for each in found.group(3, 4))
    except re.error as error:
        raise ConfigError(f"{SETTING} = {text!r}: {error.pattern!r} is no pattern: {error.msg}") from None
    parts, replacement = int(found[1]), re.sub(r"\$(\d)", r"\\g<\1>", (found[5] or "").replace("\\", "\\\\"))
    groups = 0 if searched is None else searched.groups
    if parts not in (1, 2) or any(int(number) > parts for number in re.findall(r"\$(\d)", found[2])):
        raise ConfigError(f"{SETTING} = {text!r}: must have 1 or 2 parts, and name only these")
    if any(int(number) > groups for number in re.findall(r"\$(\d)", found[5] or "")):
        raise ConfigError(f"{SETTING} = {text!r}: {found[5]!r} names a group that the pattern does not have")
    return LocalNameRule(parts, found[2], fits, searched, replacement, found[6] == "g", found[7])


def local_name(principal: str, rules: Sequence[LocalNameRule], realm: str | None) -> str | None:
    """Return the user by the first rule that matches; None if none does, or the result is not a plain name."""
    found = PRINCIPAL.fullmatch(principal)
    if found is None or not principal.isprintable():
        return None
    parts = [found[3], *filter(None, found.group(1, 2))]
    for rule in rules:
        name = apply_rule(rule, parts, realm)
        if name is not None:
            return name if name and not re.search(r"[/@]", name) else None
    return None


def apply_rule(rule: LocalNameRule, parts: Sequence[str], realm: str | None) -> str | None:
    """Return the result of a rule, None if it does not match."""
    if rule.parts == 0 and parts[0] != realm:
        return None
    if rule.parts not in (0, len(parts) - 1):
        return None
    name = re.sub(r"\$(\d)", lambda found: parts[int(found[1])], rule.form)
    if rule.fits is not None and rule.fits.fullmatch(name) is None:
        return None
    if rule.searched is not None:
        name = rule.searched.sub(rule.replacement, name, count=0 if rule.everywhere else 1)
    return name.lower() if rule.case == "L" else name.upper() if rule.case == "U" else name
