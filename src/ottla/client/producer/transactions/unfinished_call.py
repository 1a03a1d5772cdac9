"""The user's call with a result that was not returned yet. There is at most one; the same call again continues waiting."""

from __future__ import annotations

from ottla.client.producer.transactions.call_outcome import CallOutcome
from ottla.client.producer.transactions.transaction_state import ProducerTransactionState
from ottla.errors import IllegalStateError


class UnfinishedCall:
    """The name of the call and its outcome."""

    def __init__(self) -> None:
        self._awaited: tuple[str, CallOutcome] | None = None

    @property
    def name(self) -> str | None:
        """The name of the call, or None."""
        return None if self._awaited is None else self._awaited[0]

    def find_outcome(self, call: str) -> CallOutcome | None:
        """Return the outcome that the same call waits for; None if there is none, or another call is unfinished."""
        return self._awaited[1] if self._awaited is not None and self._awaited[0] == call else None

    def start_call(self, call: str, outcome: CallOutcome) -> CallOutcome:
        """Set the unfinished call."""
        self._awaited = (call, outcome)
        return outcome

    def acknowledge(self, call: str) -> None:
        """Record that the result of the call was returned to the user."""
        if self.find_outcome(call) is not None:
            self._awaited = None

    def clear(self) -> None:
        """Forget the call."""
        self._awaited = None

    def check_none(self, call: str, state: ProducerTransactionState) -> None:
        """Raise IllegalStateError if another call must be finished before `call`."""
        if self._awaited is not None:
            raise IllegalStateError(
                f"{call}() cannot be called while {self._awaited[0]}() has not finished [{state.name}]; "
                f"call {self._awaited[0]}() again to continue waiting"
            )
