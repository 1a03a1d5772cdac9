"""The retries of a failed record and the delays before them. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from ottla.errors import ConfigError


class Backoff(msgspec.Struct, frozen=True):
    """How often a failed record is retried, and after which delays.

    The delay doubles with each retry, from `base` up to `cap` seconds. `Backoff(5, base=1.0, cap=60)` calls the function
    at most six times, with about 1, 2, 4, 8 and 16 seconds between the calls.
    """

    retries: int = 5
    """The maximum number of retries after the first call."""
    base: float = 1.0
    """Seconds before the first retry."""
    cap: float = 60.0
    """The maximum delay in seconds."""
    jitter: float = 0.2
    """The part of each delay that is random, from 0 to 1, so that records that failed together are not retried together."""
    give_up_on: tuple[type[BaseException], ...] = ()
    """Exceptions after which the record is not retried, because a retry would fail too."""

    def __post_init__(self) -> None:
        if isinstance(self.retries, bool) or not isinstance(self.retries, int) or self.retries < 0:
            raise ConfigError(f"invalid value {self.retries!r} for retries: expected a whole number from 0 on")
        if not 0 <= self.base <= self.cap:
            raise ConfigError(f"invalid delays base={self.base!r}, cap={self.cap!r}: expected 0 <= base <= cap")
        if not 0 <= self.jitter <= 1:
            raise ConfigError(f"invalid value {self.jitter!r} for jitter: expected a number from 0 to 1")

    def delay(self, attempts: int, chance: float) -> float:
        """Return the seconds to wait after this number of failed calls. `chance` is a random number from 0 to 1."""
        doublings = min(attempts - 1, 64)  # keeps the float finite
        return min(self.cap, self.base * 2.0**doublings) * (1 - self.jitter * chance)

    def should_retry(self, attempts: int, error: BaseException) -> bool:
        """Return True if a record is retried after this number of failed calls, the last one with this error."""
        return attempts <= self.retries and not isinstance(error, self.give_up_on)


def checked_backoff(retries: Any) -> Backoff:
    """Return the `retries` of a worker as a Backoff. Raises ConfigError for anything but a Backoff or a number."""
    if isinstance(retries, Backoff):
        return retries
    if isinstance(retries, int):
        return Backoff(retries)
    raise ConfigError(
        f"invalid value {retries!r} for retries: expected a number or a Backoff, such as Backoff(5, base=1.0)"
    )
