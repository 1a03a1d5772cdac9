"""A user's call of the transaction machine that the sender's thread runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.client.producer.transactions.call_outcome import CallOutcome
from ottla.client.producer.transactions.transaction_machine import TransactionMachine

Step = Callable[[TransactionMachine], Any]


class SubmittedCall:
    """Pending until the call was run. If it returns a `CallOutcome`, pending until that is set."""

    def __init__(self, step: Step) -> None:
        self.error: Exception | None = None
        """The exception that the call has raised."""
        self.value: Any = None
        """The result that the call has returned."""
        self._step = step
        self._has_run = False

    def run(self, machine: TransactionMachine) -> None:
        """Make the call. The caller holds the lock."""
        try:
            self.value = self._step(machine)
        except Exception as error:
            self.error = error
        self._has_run = True

    def is_done(self) -> bool:
        """Return True once there is a value, or an error to raise."""
        return self._has_run and (self.value.done if isinstance(self.value, CallOutcome) else True)

    def raise_error(self) -> None:
        """Raise what the call has raised, or the error of its outcome."""
        if self.error is not None:
            raise self.error.with_traceback(None)
        if isinstance(self.value, CallOutcome) and self.value.error is not None:
            raise self.value.error
