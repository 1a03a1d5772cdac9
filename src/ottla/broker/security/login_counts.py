"""The numbers of logins since the start, by listener. Re-authentications are counted separately."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator


class LoginCounts:
    """The counts of all listeners of a broker, 0 included."""

    def __init__(self, listeners: Iterable[str]) -> None:
        self._listeners = tuple(listeners)
        self.first, self.again = Counter[str](), Counter[str]()
        """Successful logins: the first of a connection, and re-authentications."""
        self.first_failed, self.again_failed = Counter[str](), Counter[str]()
        self.expired = Counter[str]()
        """Connections that were closed because they sent requests after their session had expired."""

    def count_success(self, listener: str, *, again: bool) -> None:
        (self.again if again else self.first)[listener] += 1

    def count_failure(self, listener: str, *, again: bool) -> None:
        (self.again_failed if again else self.first_failed)[listener] += 1

    def list_counts(self) -> Iterator[tuple[str, str, list[tuple[tuple[str, ...], float]]]]:
        """Yield the counts: Kafka's name of the metric, its description, and the count of each listener."""
        for name, meaning, counts in (
            ("successful_authentication", "Connections that have authenticated.", self.first),
            ("failed_authentication", "Failed authentications.", self.first_failed),
            ("successful_reauthentication", "Successful re-authentications.", self.again),
            (
                "failed_reauthentication",
                "Failed re-authentications.",
                self.again_failed,
            ),
            (
                "expired_connections_killed",
                "Connections that were closed because their session had expired.",
                self.expired,
            ),
        ):
            yield name, meaning, [((one,), float(counts[one])) for one in self._listeners]
