"""Names in certificates as users: `CN=alice,OU=ops` and the rules that shorten them (`ssl.principal.mapping.rules`). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ottla.errors import ConfigError

SHORT = {
    "commonName": "CN",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
"""OpenSSL's names of attributes → those of RFC 2253; others keep theirs."""
EMAIL = "1.2.840.113549.1.9.1"
RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)", re.DOTALL)


class MappingRule(NamedTuple):
    """A pattern for a whole name, and its replacement."""

    pattern: re.Pattern[str]
    replacement: str
    case: str
    """L or U for lower or upper case; empty for no change."""


DEFAULT = MappingRule(re.compile("(.*)", re.DOTALL), r"\1", "")


def distinguished_name(certificate: Any) -> str:
    """Return the subject of a certificate from Python's ssl, in the order and spelling of RFC 2253."""
    subject = reversed(certificate.get("subject", ()))
    return ",".join("+".join(format_attribute(name, value) for name, value in attributes) for attributes in subject)


def format_attribute(name: str, value: str) -> str:
    """Return one attribute of a name, escaped as in RFC 2253."""
    if name == "emailAddress":  # has no short name in RFC 2253
        data = value.encode("ascii", "replace")
        return f"{EMAIL}=#16{len(data):02x}{data.hex()}"
    escaped = re.sub(r'([,+"\\<>;])', r"\\\1", value)
    if escaped.startswith(("#", " ")):
        escaped = "\\" + escaped
    if escaped.endswith(" "):
        escaped = escaped[:-1] + "\\ "
    return f"{SHORT.get(name, name)}={escaped}"


def read_rules(text: str) -> list[MappingRule]:
    """Return the rules of a setting. Raise ConfigError if one is malformed."""
    rules: list[MappingRule] = []
    position, text = 0, text.strip() or "DEFAULT"
    while position < len(text):
        found = RULE.match(text, position)
        if found is None:
            raise ConfigError(
                f"ssl.principal.mapping.rules = {text!r}: invalid at {text[position : position + 40]!r}; "
                "a rule is RULE:pattern/replacement/ with L or U behind it for small or capital letters, or DEFAULT"
            )
        rules.append(DEFAULT if found[1] else mapping_rule(text, *found.group(2, 3, 4)))
        position = found.end()
    return rules


def mapping_rule(text: str, pattern: str, replacement: str, case: str) -> MappingRule:
    """Return a rule; groups of the pattern are `$1` in the replacement, as in Java."""
    try:
        compiled = re.compile(pattern.replace(r"\/", "/"), re.DOTALL)
    except re.error as error:
        raise ConfigError(
            f"ssl.principal.mapping.rules = {text!r}: {pattern!r} is not a regular expression: {error}"
        ) from None
    template = re.sub(r"\$(\d+)", r"\\g<\1>", replacement.replace("\\/", "/"))
    if any(int(number) > compiled.groups for number in re.findall(r"\$(\d+)", replacement)):
        raise ConfigError(
            f"ssl.principal.mapping.rules = {text!r}: {replacement!r} names a group that the pattern does not have"
        )
    return MappingRule(compiled, template, case)


def map_name(name: str, rules: Sequence[MappingRule]) -> str | None:
    """Return the user by the first rule that matches the whole name; None if no rule matches."""
    for rule in rules:
        found = rule.pattern.fullmatch(name)
        if found is not None:
            user = found.expand(rule.replacement)
            return user.lower() if rule.case == "L" else user.upper() if rule.case == "U" else user
    return None
