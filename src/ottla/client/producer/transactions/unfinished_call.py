"""The call of a user's that has not been heard to end: one at a time, and made again it goes on waiting."""

from __future__ import annotations

from ottla.client.producer.transactions.outcome import Outcome
from ottla.client.producer.transactions.transaction_state import TransactionState
from ottla.errors import IllegalStateError


class UnfinishedCall:
    """The call's name and its outcome, where there is one."""

    def __init__(self) -> None:
        self._awaited: tuple[str, Outcome] | None = None

    @property
    def name(self) -> str | None:
        """The name of the call; None where there is none."""
        return None if self._awaited is None else self._awaited[0]

    def outcome_of(self, call: str) -> Outcome | None:
        """What the same call waits for already; None where it is another, or none."""
        return self._awaited[1] if self._awaited is not None and self._awaited[0] == call else None

    def begin(self, call: str, outcome: Outcome) -> Outcome:
        """It will end so."""
        self._awaited = (call, outcome)
        return outcome

    def acknowledge(self, call: str) -> None:
        """The user has heard how the call ended."""
        if self.outcome_of(call) is not None:
            self._awaited = None

    def clear(self) -> None:
        """Nobody waits any more."""
        self._awaited = None

    def check_none(self, call: str, state: TransactionState) -> None:
        """IllegalStateError where another has to be waited for before `call`."""
        if self._awaited is not None:
            raise IllegalStateError(
                f"{call}() cannot be called while {self._awaited[0]}() has not finished [{state.name}]; "
                f"call {self._awaited[0]}() again to go on waiting"
            )
