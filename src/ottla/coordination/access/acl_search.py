"""Finds the rules that many filters match, at a cost that grows with the rules and the filters, and not with their product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from ottla.coordination.access.acl import Acl, AclFilter
from ottla.coordination.access.acl_store import AclStore
from ottla.protocol.acl import WILDCARD, Operation, PatternType, PermissionType, ResourceType

Found = tuple[int, UUID, Acl]
"""A rule with its place in the order in which rules were made."""
Index = Mapping[tuple[object, ...], Sequence[Found]]
ANYTHING = AclFilter(
    ResourceType.ANY, None, PatternType.ANY, None, None, Operation.ANY, PermissionType.ANY
)  # what a filter has in the parts that it leaves open


class AclSearch:
    """Answers the filters of one request over rules that do not change meanwhile.

    DeleteAcls may have a hundred thousand filters, and a cluster ten thousand rules. A filter leaves some of its seven parts open;
    rules are indexed by the others, once for each such choice of parts. There are at most 2⁷ choices.
    """

    def __init__(self, rules: AclStore) -> None:
        self._rules = rules
        self._indexes: dict[tuple[int, ...], Index] = {}
        self._scanned: dict[tuple[int, ...], int] = {}
        """The rules that were looked at one by one, by the choice of parts, as long as it has no index."""

    def find_matching(self, wanted: AclFilter) -> list[tuple[UUID, Acl]]:
        """Return the rules that a filter matches, with their ids, in the order in which they were made."""
        parts = fixed_parts(wanted)
        index = self._indexes.get(parts)
        if index is None:
            seen = self._scanned.get(parts, 0) + self._rules.count_candidates(wanted)
            self._scanned[parts] = seen
            if seen <= len(self._rules.by_id):
                return list(self._rules.find_matching(wanted))
            index = self._indexes[parts] = index_of(self._rules, parts)
        found = [each for key in self._keys(wanted, parts) for each in index.get(key, ())]
        return [(acl_id, acl) for _, acl_id, acl in sorted(found)]

    def _keys(self, wanted: AclFilter, parts: tuple[int, ...]) -> Iterator[tuple[object, ...]]:
        """Yield the values that a matching rule has in these parts: for MATCH one key for each pattern that may cover the name."""
        if wanted.name is None or wanted.pattern_type != PatternType.MATCH:
            yield tuple(wanted[part] for part in parts)
            return
        for pattern_type, name in self._patterns(wanted.name, wanted.resource_type):
            yield tuple(wanted._replace(pattern_type=pattern_type, name=name)[part] for part in parts)

    def _patterns(self, name: str, resource_type: int) -> Iterator[tuple[int, str]]:
        yield PatternType.LITERAL, name
        if name != WILDCARD:
            yield PatternType.LITERAL, WILDCARD
        for length in self._rules.prefix_lengths(resource_type):
            if length <= len(name):
                yield PatternType.PREFIXED, name[:length]


def fixed_parts(wanted: AclFilter) -> tuple[int, ...]:
    """Return the numbers of the parts that a filter fixes. MATCH without a name leaves the kind of pattern open."""
    if wanted.name is None and wanted.pattern_type == PatternType.MATCH:
        wanted = wanted._replace(pattern_type=PatternType.ANY)
    return tuple(part for part, (value, is_open) in enumerate(zip(wanted, ANYTHING, strict=True)) if value != is_open)


def index_of(rules: AclStore, parts: tuple[int, ...]) -> Index:
    """Return all rules by their values in these parts."""
    index: dict[tuple[object, ...], list[Found]] = {}
    for position, (acl_id, acl) in enumerate(rules.by_id.items()):
        index.setdefault(tuple(acl[part] for part in parts), []).append((position, acl_id, acl))
    return index
