"""How many logins there were since the start, by listener: a session that goes on by one more login is no new connection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator


class LoginCounts:
    """Of all listeners of a broker, whether or not somebody has come."""

    def __init__(self, listeners: Iterable[str]) -> None:
        self._listeners = tuple(listeners)
        self.first, self.again = Counter[str](), Counter[str]()
        """Those that succeeded: the first of a connection, and those with which it went on."""
        self.first_failed, self.again_failed = Counter[str](), Counter[str]()
        self.expired = Counter[str]()
        """Connections that were ended because they went on asking when their session was over."""

    def succeeded(self, listener: str, *, again: bool) -> None:
        (self.again if again else self.first)[listener] += 1

    def failed(self, listener: str, *, again: bool) -> None:
        (self.again_failed if again else self.first_failed)[listener] += 1

    def named(self) -> Iterator[tuple[str, str, list[tuple[tuple[str, ...], float]]]]:
        """Each under the name that Kafka has for it, what it means, and the count of each listener."""
        for name, meaning, counts in (
            ("successful_authentication", "Connections that have logged in.", self.first),
            ("failed_authentication", "Logins that were refused.", self.first_failed),
            ("successful_reauthentication", "Logins by which a session went on.", self.again),
            (
                "failed_reauthentication",
                "Logins by which a session was to go on, that were refused.",
                self.again_failed,
            ),
            ("expired_connections_killed", "Connections ended because their session was over.", self.expired),
        ):
            yield name, meaning, [((one,), float(counts[one])) for one in self._listeners]
