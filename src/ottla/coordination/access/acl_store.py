"""The stored entries, indexed by resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from uuid import UUID

from ottla.coordination.access.acl import Acl, AclFilter
from ottla.protocol.acl import WILDCARD, PatternType, ResourceType

Place = tuple[int, int, str]
"""Kind of pattern, kind of resource, name."""


class AclStore:
    """Rules by id, and by what they are about: of ten thousand rules few are about one topic."""

    def __init__(self) -> None:
        self.by_id: dict[UUID, Acl] = {}
        self.version = 0
        """Grows with each change."""
        self._places: dict[Place, Counter[Acl]] = {}
        self._ids_of_name: dict[str, dict[UUID, None]] = {}
        self._prefix_lengths: dict[int, Counter[int]] = {}
        """How many prefixes of each length there are, for each kind of resource."""

    def __contains__(self, acl: Acl) -> bool:
        return acl in self._places.get(place_of(acl), ())

    def add(self, acl_id: UUID, acl: Acl) -> None:
        self.remove(acl_id)
        self.version += 1
        self.by_id[acl_id] = acl
        self._ids_of_name.setdefault(acl.name, {})[acl_id] = None
        self._places.setdefault(place_of(acl), Counter())[acl] += 1
        if acl.pattern_type == PatternType.PREFIXED:
            self._prefix_lengths.setdefault(acl.resource_type, Counter())[len(acl.name)] += 1

    def remove(self, acl_id: UUID) -> None:
        """Forget a rule, if there is one of that id."""
        acl = self.by_id.pop(acl_id, None)
        if acl is None:
            return
        self.version += 1
        named = self._ids_of_name[acl.name]
        del named[acl_id]
        if not named:
            del self._ids_of_name[acl.name]
        place = self._places[place_of(acl)]
        decrement(place, acl)
        if not place:
            del self._places[place_of(acl)]
        if acl.pattern_type == PatternType.PREFIXED:
            decrement(self._prefix_lengths[acl.resource_type], len(acl.name))

    def find_literal(self, resource_type: int, name: str) -> Iterator[Acl]:
        """Yield every entry with a pattern that covers a resource."""
        places = self._places
        yield from places.get((PatternType.LITERAL, resource_type, name), ())
        if name != WILDCARD:
            yield from places.get((PatternType.LITERAL, resource_type, WILDCARD), ())
        for length in self._prefix_lengths.get(resource_type, ()):
            if length <= len(name):
                yield from places.get((PatternType.PREFIXED, resource_type, name[:length]), ())

    def of_type(self, resource_type: int) -> Iterator[Acl]:
        """Every rule about resources of a kind."""
        for (_, kind, _), acls in self._places.items():
            if kind == resource_type:
                yield from acls

    def find_matching(self, wanted: AclFilter) -> Iterator[tuple[UUID, Acl]]:
        """Yield the rules that match a filter, with their ids. For a filter with a resource only the rules of the resource are scanned."""
        return ((acl_id, acl) for acl_id, acl in self._candidates(wanted) if wanted.is_match(acl))

    def count_candidates(self, wanted: AclFilter) -> int:
        """Return the number of entries that `find_matching` examines."""
        is_named = wanted.name is not None and wanted.pattern_type != PatternType.MATCH
        return len(self._ids_of_name.get(wanted.name or "", ()) if is_named else self.by_id)

    def prefix_lengths(self, resource_type: int) -> Set[int]:
        """Return the lengths of the prefixes in rules about a kind of resource, or about any."""
        if resource_type != ResourceType.ANY:
            return self._prefix_lengths.get(resource_type, {}).keys()
        return {length for lengths in self._prefix_lengths.values() for length in lengths}

    def _candidates(self, wanted: AclFilter) -> Iterable[tuple[UUID, Acl]]:
        if wanted.name is None or wanted.pattern_type == PatternType.MATCH:
            return self.by_id.items()
        return [(acl_id, self.by_id[acl_id]) for acl_id in self._ids_of_name.get(wanted.name, ())]

    def check(self) -> None:
        kept = Counter(self.by_id.values())
        assert sum(self._places.values(), Counter()) == kept
        for kind, lengths in self._prefix_lengths.items():
            prefixes = Counter(
                len(acl.name)
                for acl in self.by_id.values()
                if (acl.resource_type, acl.pattern_type) == (kind, PatternType.PREFIXED)
            )
            assert lengths == prefixes


def place_of(acl: Acl) -> Place:
    return acl.pattern_type, acl.resource_type, acl.name


def decrement(counter: Counter[Acl] | Counter[int], key: Acl | int) -> None:
    """Count one less, and nothing where there is none left."""
    counter[key] -= 1  # type: ignore[index]
    if not counter[key]:  # type: ignore[index]
        del counter[key]
