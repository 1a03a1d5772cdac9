"""The filters of one request find what each finds alone, and twice as many filters over twice as many rules cost twice as much."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from itertools import product
from uuid import UUID

import pytest

from ottla.coordination.access.acl import Acl, AclFilter
from ottla.coordination.access.acl_search import AclSearch
from ottla.coordination.access.acl_store import AclStore
from ottla.coordination.cluster.acl_request import decide_deletion
from ottla.coordination.cluster.events import AclDeletionRequested
from ottla.protocol.acl import Operation, PatternType, PermissionType, ResourceType

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED, MATCH = PatternType.LITERAL, PatternType.PREFIXED, PatternType.MATCH
READ, WRITE, ALLOW, DENY = Operation.READ, Operation.WRITE, PermissionType.ALLOW, PermissionType.DENY
NAMES = ("a", "ab", "abc", "b", "*")
TRIES = 4


def store(rules: list[Acl]) -> AclStore:
    kept = AclStore()
    for number, rule in enumerate(rules):
        kept.add(UUID(int=number), rule)
    return kept


def test_each_filter_finds_what_it_finds_alone_in_the_order_of_the_rules() -> None:
    chance = random.Random(44)
    rules = [
        Acl(*parts)
        for parts in product(
            (TOPIC, GROUP), NAMES, (LITERAL, PREFIXED), ("User:a", "User:b"), ("*",), (READ, WRITE), (ALLOW,)
        )
    ]
    kept = store(chance.sample(rules, 60))
    wishes = [
        AclFilter(*parts)
        for parts in product(
            (ResourceType.ANY, TOPIC),
            (None, *NAMES, "abcd", ""),
            (PatternType.ANY, MATCH, LITERAL, PREFIXED),
            (None, "User:a", "User:c"),
            (None, "*"),
            (Operation.ANY, READ),
            (PermissionType.ANY, ALLOW, DENY),
        )
    ]
    chance.shuffle(wishes)
    search = AclSearch(kept)
    for wish in wishes:
        assert search.find_matching(wish) == list(kept.find_matching(wish)), wish


WISHES: dict[str, Callable[[int], AclFilter]] = {
    "names": lambda number: AclFilter(TOPIC, f"topic-{number}", LITERAL),
    "names that no rule has": lambda number: AclFilter(TOPIC, f"no-topic-{number}"),
    "names by any pattern that covers them": lambda number: AclFilter(TOPIC, f"topic-{number}", MATCH),
    "principals": lambda number: AclFilter(principal=f"User:{number}"),
    "principals that no rule has": lambda number: AclFilter(principal=f"User:nobody-{number}"),
    "principals of one name": lambda number: AclFilter(TOPIC, "shared", LITERAL, f"User:{number}"),
    "hosts": lambda number: AclFilter(host=f"10.0.0.{number}"),
}


@pytest.mark.parametrize("kind", WISHES)
def test_twice_as_many_distinct_filters_over_twice_as_many_rules_cost_twice_as_much(kind: str) -> None:
    def spent(count: int) -> float:
        rules = [
            Acl(TOPIC, name, LITERAL, f"User:{number}", f"10.0.0.{number}", READ, ALLOW)
            for number in range(count // 2)
            for name in (f"topic-{number}", "shared")
        ]
        kept, wishes = store(rules), [WISHES[kind](number) for number in range(count)]
        start = time.thread_time()
        decide_deletion(kept, AclDeletionRequested(1, wishes))
        return time.thread_time() - start

    for _ in range(TRIES):
        small, large = spent(2_000), spent(4_000)
        if large <= 2.8 * small + 0.003:
            return
    raise AssertionError(f"{kind}: {small:.3f} s for 2,000 filters and rules, {large:.3f} s for twice as many")


def test_a_hundred_thousand_filters_do_not_rescan_the_rules() -> None:
    rules = [Acl(TOPIC, "t", PREFIXED, f"User:{number}", "*", READ, ALLOW) for number in range(1_000)]
    kept = store(rules)
    search = AclSearch(kept)
    wishes = [AclFilter(principal=f"User:none-{number}") for number in range(100_000)]
    start = time.thread_time()
    assert not any(map(search.find_matching, wishes))
    assert time.thread_time() - start < 5
