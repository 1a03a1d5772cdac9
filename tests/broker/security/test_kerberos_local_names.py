"""Principals of Kerberos as users, by Kafka's rules."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.security.kerberos_local_names import local_name, read_local_rules
from ottla.errors import ConfigError

REALM = "EXAMPLE.ORG"


def named(principal: str, *rules: str) -> str | None:
    return local_name(principal, read_local_rules(rules), REALM)


@pytest.mark.parametrize(
    ("principal", "user"),
    [
        ("alice@EXAMPLE.ORG", "alice"),
        ("kafka/broker.example.org@EXAMPLE.ORG", "kafka"),
        ("alice@ELSEWHERE.ORG", None),
        ("alice", None),
        ("alice/a/b@EXAMPLE.ORG", None),
        (r"alice\@EXAMPLE.ORG@EXAMPLE.ORG", None),
        (r"al\/ice@EXAMPLE.ORG", None),
        ("alice\x1b[2J@EXAMPLE.ORG", None),
        ("@EXAMPLE.ORG", None),
    ],
)
def test_by_default_the_first_component_of_a_principal_of_the_own_realm_is_the_user(
    principal: str, user: str | None
) -> None:
    assert named(principal) == user


@pytest.mark.parametrize(
    ("rule", "principal", "user"),
    [
        ("RULE:[1:$1@$0](.*@ELSEWHERE.ORG)s/@.*//", "alice@ELSEWHERE.ORG", "alice"),
        ("RULE:[1:$1@$0](.*@ELSEWHERE.ORG)s/@.*//", "alice@EXAMPLE.ORG", None),
        ("RULE:[2:$1-$2]", "etl/nightly@EXAMPLE.ORG", "etl-nightly"),
        ("RULE:[2:$1-$2]", "etl@EXAMPLE.ORG", None),
        ("RULE:[1:$1]/L", "Alice@EXAMPLE.ORG", "alice"),
        ("RULE:[1:$1](.*)s/a/b/", "banana@EXAMPLE.ORG", "bbnana"),
        ("RULE:[1:$1](.*)s/a/b/g/U", "banana@EXAMPLE.ORG", "BBNBNB"),
        (r"RULE:[1:$1](.*)s/^svc-(\w+)$/$1/", "svc-etl@EXAMPLE.ORG", "etl"),
        ("RULE:[1:$1@$0]", "alice@EXAMPLE.ORG", None),
        ("RULE:[1:$1](.*)s/.*//", "alice@EXAMPLE.ORG", None),
        ("DEFAULT/U", "alice@EXAMPLE.ORG", "ALICE"),
    ],
)
def test_a_matching_rule_maps_a_principal_to_a_user(rule: str, principal: str, user: str | None) -> None:
    assert named(principal, rule) == user


def test_the_first_matching_rule_is_applied() -> None:
    rules = ("RULE:[1:$1](admin)s/.*/chief/", "DEFAULT")
    assert named("admin@EXAMPLE.ORG", *rules) == "chief"
    assert named("alice@EXAMPLE.ORG", *rules) == "alice"


@pytest.mark.parametrize(
    "rule", ["RULE", "RULE:[1:$1", "RULE:[1:$1](()", "RULE:[1:$2]", "RULE:[3:$1]", "RULE:[1:$1](.*)s/a/$1/", "default"]
)
def test_an_invalid_rule_is_rejected_with_the_reason(rule: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"sasl.kerberos.principal.to.local.rules = {rule!r}: ")):
        read_local_rules([rule])


@given(st.text(max_size=40))
def test_no_rule_maps_a_principal_to_a_name_with_a_slash_or_an_at_sign(principal: str) -> None:
    found = named(principal, "RULE:[1:$1$0]", "RULE:[2:$1$2]", "DEFAULT")
    assert found is None or not re.search(r"[/@\\\s]", found)
