from __future__ import annotations

import pytest

from ottla.client.producer.transactions.transaction_state import (
    ALLOWED,
    REMEDIES,
    TRANSITIONS,
    TransactionState,
    check_call,
    check_transition,
)
from ottla.errors import IllegalStateError


def test_every_state_is_in_every_table_and_can_be_left_but_for_the_fatal_one() -> None:
    assert set(TRANSITIONS) == set(REMEDIES) == set(TransactionState)
    for state in set(TransactionState) - {TransactionState.FATAL_ERROR}:
        assert TransactionState.FATAL_ERROR in TRANSITIONS[state]
    assert TRANSITIONS[TransactionState.FATAL_ERROR] == {TransactionState.FATAL_ERROR}


def test_a_step_that_is_not_in_the_table_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError, match="READY does not lead to COMMITTING_TRANSACTION"):
        check_transition(TransactionState.READY, TransactionState.COMMITTING_TRANSACTION)


@pytest.mark.behaviour("P7")
@pytest.mark.parametrize("call", ALLOWED)
@pytest.mark.parametrize("state", TransactionState)
def test_a_call_that_may_not_be_made_names_the_state_the_call_and_what_to_do(
    call: str, state: TransactionState
) -> None:
    if state in ALLOWED[call]:
        check_call(call, state, None)
        return
    with pytest.raises(IllegalStateError) as caught:
        check_call(call, state, ValueError("the cause"))
    for fact in (f"{call}()", state.name, state.value, "the cause", ": "):
        assert fact in str(caught.value)
    assert "call " in str(caught.value) or "close " in str(caught.value)
