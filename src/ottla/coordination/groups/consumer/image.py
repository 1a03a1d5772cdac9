"""The topics of the cluster at one moment, as groups see them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct, field

from ottla.coordination.regular_expression import MOST_VISITS, TooMuchWork, compiled
from ottla.digests import compute_fingerprint


class TopicMetadata(NamedTuple):
    """The properties of a topic that an assignment depends on."""

    name: str
    topic_id: UUID
    partitions: int


class TopicImage(Struct, frozen=True, eq=False):
    """Topics by name and by id. Another moment has another version."""

    version: int = 0
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    _names: dict[UUID, str] = field(default_factory=dict)
    _digests: dict[frozenset[str], int] = field(default_factory=dict)
    _matches: dict[str, frozenset[str] | TooMuchWork] = field(default_factory=dict)
    """Cached results, because every heartbeat needs them."""

    @classmethod
    def of(cls, version: int, topics: Iterable[TopicMetadata]) -> TopicImage:
        """Return an image of these topics."""
        by_name = {topic.name: topic for topic in topics}
        return cls(version, by_name, {topic.topic_id: name for name, topic in by_name.items()})

    def name_of(self, topic_id: UUID) -> str | None:
        """Return the name of a topic, None where it is no more."""
        return self._names.get(topic_id)

    def ids_of(self, names: Iterable[str]) -> frozenset[UUID]:
        """Return the ids of the topics that exist."""
        return frozenset(self.topics[name].topic_id for name in names if name in self.topics)

    def known(self, names: Iterable[str]) -> Iterator[TopicMetadata]:
        """Yield those topics that exist."""
        return (self.topics[name] for name in names if name in self.topics)

    def digest(self, names: frozenset[str]) -> int:
        """Return a number (int64) that changes if one of these topics is created, deleted, recreated, or gets partitions."""
        found = self._digests.get(names)
        if found is None:
            found = self._digests[names] = digest_of(sorted(self.known(names)))
        return found

    def matching(self, regex: str) -> frozenset[str]:
        """Return the topics of which a regular expression matches the whole name. Raise TooMuchWork if the match is too expensive."""
        found = self._matches.get(regex)
        if found is None:
            found = self._matches[regex] = self._matched(regex)
        if isinstance(found, TooMuchWork):
            raise found
        return found

    def _matched(self, regex: str) -> frozenset[str] | TooMuchWork:
        pattern = compiled(regex)
        pattern.allow(MOST_VISITS)
        try:
            return frozenset(name for name in self.topics if pattern.matches(name))
        except TooMuchWork as fault:
            return fault


def digest_of(topics: Sequence[TopicMetadata]) -> int:
    """0 where there are none."""
    text = "\n".join(f"{topic.name} {topic.topic_id} {topic.partitions}" for topic in topics)
    return int.from_bytes(compute_fingerprint(text.encode()), "big", signed=True) if topics else 0
