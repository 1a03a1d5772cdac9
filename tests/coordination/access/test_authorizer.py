"""The authorizer: each rule alone, and all of them against a model that scans every rule."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.access.acl import Acl, AclFilter
from ottla.coordination.access.acl_store import AclStore
from ottla.coordination.access.authorizer import MOST_VERDICTS, Authorizer
from ottla.protocol.acl import Operation, PatternType, PermissionType, ResourceType

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
READ, WRITE, ALL, DESCRIBE = Operation.READ, Operation.WRITE, Operation.ALL, Operation.DESCRIBE
ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY
ALICE, HERE = "User:alice", "10.0.0.1"


def acl(
    name: str = "orders",
    operation: Operation = READ,
    permission: PermissionType = ALLOW,
    *,
    pattern: PatternType = LITERAL,
    principal: str = ALICE,
    host: str = "*",
    kind: ResourceType = TOPIC,
) -> Acl:
    return Acl(kind, name, pattern, principal, host, operation, permission)


def store(*acls: Acl) -> AclStore:
    kept = AclStore()
    for number, each in enumerate(acls, 1):
        kept.add(UUID(int=number), each)
    kept.check()
    return kept


def may(
    *acls: Acl, operation: Operation = READ, name: str = "orders", principal: str = ALICE, host: str = HERE
) -> bool:
    return Authorizer(store(*acls)).is_allowed(principal, host, operation, TOPIC, name)


def test_without_a_rule_every_operation_is_denied() -> None:
    assert not may()


def test_an_allowance_is_for_its_principal_host_operation_and_name() -> None:
    rule = acl(host=HERE)
    assert may(rule)
    assert not may(rule, principal="User:bob")
    assert not may(rule, host="10.0.0.2")
    assert not may(rule, operation=WRITE)
    assert not may(rule, name="orders-2")
    assert not may(acl(kind=GROUP))


@pytest.mark.parametrize(
    ("cidr", "host", "expected"),
    [
        ("10.0.0.0/8", "10.200.0.1", True),
        ("10.0.0.0/8", "11.0.0.1", False),
        ("10.0.0.77/24", "10.0.0.1", True),
        ("10.0.0.1/32", "10.0.0.2", False),
        ("2001:db8::/32", "2001:db8::7", True),
        ("2001:db8::/32", "2001:db9::7", False),
        ("2001:db8::/32", "10.0.0.1", False),
        ("0.0.0.0/0", "::1", False),
        ("10.0.0.0/8", "a unix socket", False),
        ("10.0.0.0/99", "10.0.0.1", False),
    ],
)
def test_a_rule_may_be_for_a_range_of_addresses(cidr: str, host: str, expected: bool) -> None:
    assert may(acl(host=cidr), host=host) == expected


def test_a_denied_range_outweighs_an_allowed_address() -> None:
    rules = acl(host=HERE), acl(host="10.0.0.0/24", permission=DENY)
    assert not may(*rules)
    assert may(*rules, acl(host="10.1.0.0/16"), host="10.1.0.1")


def test_user_star_matches_every_principal_and_star_every_name() -> None:
    assert may(acl("*", principal="User:*"), principal="User:bob", name="anything")


def test_a_prefix_covers_names_that_begin_with_it_and_no_others() -> None:
    rule = acl("or", pattern=PREFIXED)
    assert may(rule)
    assert may(rule, name="or")
    assert not may(rule, name="o")


def test_characters_of_patterns_mean_themselves() -> None:
    assert not may(acl("or.*"))
    assert not may(acl("*", pattern=PREFIXED))
    assert may(acl("*", pattern=PREFIXED), name="*-1")
    assert not may(acl("ord?rs"))


@pytest.mark.parametrize(
    "denial",
    [
        acl(permission=DENY),
        acl("*", ALL, DENY),
        acl("o", ALL, DENY, pattern=PREFIXED),
        acl(principal="User:*", permission=DENY),
    ],
)
def test_a_deny_rule_overrides_every_allow_rule(denial: Acl) -> None:
    assert not may(acl(), acl("*", ALL), denial)


@pytest.mark.parametrize("operation", [READ, WRITE, Operation.DELETE, Operation.ALTER])
def test_any_allowed_operation_implies_describe(operation: Operation) -> None:
    assert may(acl(operation=operation), operation=DESCRIBE)
    assert not may(acl(operation=Operation.CREATE), operation=DESCRIBE)


def test_alter_configs_implies_describe_configs() -> None:
    assert may(acl(operation=Operation.ALTER_CONFIGS), operation=Operation.DESCRIBE_CONFIGS)


def test_a_deny_rule_denies_only_its_operation() -> None:
    assert may(acl(permission=DENY), acl(operation=WRITE), operation=DESCRIBE)


def test_a_super_user_ignores_deny_rules() -> None:
    authorizer = Authorizer(store(acl("*", ALL, DENY)), [ALICE])
    assert authorizer.is_allowed(ALICE, HERE, WRITE, TOPIC, "orders")


def test_a_rule_for_another_principal_closes_a_resource_that_was_open_by_default() -> None:
    authorizer = Authorizer(store(acl(principal="User:bob")), allow_if_no_acl=True)
    assert authorizer.is_allowed(ALICE, HERE, READ, TOPIC, "other")
    assert not authorizer.is_allowed(ALICE, HERE, READ, TOPIC, "orders")


def test_a_cached_decision_is_valid_until_a_rule_changes() -> None:
    kept = store(acl())
    authorizer = Authorizer(kept)
    assert authorizer.is_allowed(ALICE, HERE, READ, TOPIC, "orders")
    assert not authorizer.is_any_allowed(ALICE, HERE, WRITE, TOPIC)
    kept.remove(UUID(int=1))
    assert not authorizer.is_allowed(ALICE, HERE, READ, TOPIC, "orders")
    kept.add(UUID(int=2), acl(operation=WRITE))
    assert authorizer.is_any_allowed(ALICE, HERE, WRITE, TOPIC)


def test_invented_names_do_not_fill_the_memory() -> None:
    authorizer = Authorizer(store(acl()))
    for number in range(MOST_VERDICTS + 10):
        authorizer.is_allowed(ALICE, HERE, READ, TOPIC, f"t{number}")
    assert len(authorizer._verdicts) <= MOST_VERDICTS
    assert authorizer.is_allowed(ALICE, HERE, READ, TOPIC, "orders")


def test_operations_are_a_bit_for_each() -> None:
    authorizer = Authorizer(store(acl(operation=WRITE)), [])
    assert authorizer.operations(ALICE, HERE, TOPIC, "orders") == 1 << WRITE | 1 << DESCRIBE
    assert Authorizer(AclStore(), [ALICE]).operations(ALICE, HERE, TOPIC, "orders") == 3576
    assert Authorizer(AclStore(), [ALICE]).operations(ALICE, HERE, GROUP, "g") == 3400
    assert Authorizer(AclStore(), [ALICE]).operations(ALICE, HERE, ResourceType.CLUSTER, "kafka-cluster") == 8096


@pytest.mark.parametrize(
    ("acls", "verdict"),
    [
        ((acl(),), False),
        ((acl(operation=WRITE),), True),
        ((acl(operation=WRITE), acl("*", WRITE, DENY)), False),
        ((acl(operation=WRITE), acl("or", WRITE, DENY, pattern=PREFIXED)), False),
        ((acl("or", WRITE, pattern=PREFIXED), acl("orders", WRITE, DENY)), True),
        ((acl("*", WRITE), acl("o", ALL, DENY, pattern=PREFIXED)), True),
        ((acl(operation=WRITE), acl("orders", READ, DENY)), True),
    ],
)
def test_write_is_possible_somewhere_if_an_allow_rule_remains(acls: Sequence[Acl], verdict: bool) -> None:
    assert Authorizer(store(*acls)).is_any_allowed(ALICE, HERE, WRITE, TOPIC) is verdict


NAMES = st.sampled_from(["a", "ab", "abc", "b", "*", "a*", ""])
ACLS = st.builds(
    Acl,
    st.sampled_from([TOPIC, GROUP]),
    NAMES,
    st.sampled_from([LITERAL, PREFIXED]),
    st.sampled_from([ALICE, "User:bob", "User:*"]),
    st.sampled_from([HERE, "10.0.0.2", "*"]),
    st.sampled_from([ALL, READ, WRITE, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS, DESCRIBE]),
    st.sampled_from([ALLOW, DENY]),
)


def naive(acls: Sequence[Acl], default: bool, principal: str, host: str, operation: int, kind: int, name: str) -> bool:
    """The same by the words of the documentation, rule by rule."""
    about = [
        each
        for each in acls
        if each.resource_type == kind
        and (
            (each.pattern_type == LITERAL and each.name in ("*", name))
            or (each.pattern_type == PREFIXED and name.startswith(each.name))
        )
    ]
    if not about:
        return default
    implied = {
        DESCRIBE: {READ, WRITE, Operation.DELETE, Operation.ALTER},
        Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
    }.get(Operation(operation), set())
    mine = [each for each in about if each.principal in (principal, "User:*") and each.host in (host, "*")]
    if any(each.permission == DENY and each.operation in (ALL, operation) for each in mine):
        return False
    return any(each.permission == ALLOW and each.operation in {ALL, operation, *implied} for each in mine)


@given(
    st.lists(ACLS, max_size=6),
    st.booleans(),
    st.lists(
        st.tuples(
            st.sampled_from([ALICE, "User:bob", "User:eve"]),
            st.sampled_from([HERE, "10.0.0.9"]),
            st.sampled_from([READ, WRITE, DESCRIBE, Operation.DESCRIBE_CONFIGS]),
            st.sampled_from([TOPIC, GROUP]),
            NAMES,
        ),
        max_size=6,
    ),
    st.integers(0, 5),
)
def test_every_decision_equals_that_of_a_model_that_scans_every_rule(
    acls: list[Acl], default: bool, questions: list[tuple[str, str, Operation, ResourceType, str]], gone: int
) -> None:
    kept = store(*acls)
    authorizer = Authorizer(kept, allow_if_no_acl=default)
    for question in questions:
        assert authorizer.is_allowed(*question) is naive(acls, default, *question)
    kept.remove(UUID(int=gone + 1))
    kept.check()
    left = [each for number, each in enumerate(acls) if number != gone]
    for question in questions:
        assert authorizer.is_allowed(*question) is naive(left, default, *question)


FILTERS = st.builds(
    AclFilter,
    st.sampled_from([ResourceType.ANY, TOPIC]),
    st.none() | NAMES,
    st.sampled_from([PatternType.ANY, PatternType.MATCH, LITERAL, PREFIXED]),
    st.none() | st.sampled_from([ALICE]),
    st.none() | st.sampled_from(["*"]),
    st.sampled_from([Operation.ANY, READ]),
    st.sampled_from([PermissionType.ANY, DENY]),
)


@given(FILTERS, ACLS)
def test_a_match_filter_finds_the_rules_that_decide_about_a_name(wanted: AclFilter, rule: Acl) -> None:
    found = wanted.is_match(rule)
    if wanted == AclFilter():
        assert found
    if found and wanted.pattern_type == PatternType.MATCH and wanted.name is not None:
        assert rule.is_covering(rule.resource_type, wanted.name)
    if found and wanted.pattern_type in (LITERAL, PREFIXED):
        assert rule.pattern_type == wanted.pattern_type
        assert wanted.name in (None, rule.name)
