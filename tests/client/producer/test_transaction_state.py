from __future__ import annotations

import pytest

from ottla.client.producer.transactions.transaction_state import (
    ALLOWED,
    REMEDIES,
    TRANSITIONS,
    ProducerTransactionState,
    check_call,
    check_transition,
)
from ottla.errors import IllegalStateError


def test_every_state_is_in_every_table_and_all_but_the_fatal_one_have_an_exit() -> None:
    assert set(TRANSITIONS) == set(REMEDIES) == set(ProducerTransactionState)
    for state in set(ProducerTransactionState) - {ProducerTransactionState.FATAL_ERROR}:
        assert ProducerTransactionState.FATAL_ERROR in TRANSITIONS[state]
    assert TRANSITIONS[ProducerTransactionState.FATAL_ERROR] == {ProducerTransactionState.FATAL_ERROR}


def test_a_transition_missing_in_the_table_is_an_internal_error() -> None:
    with pytest.raises(AssertionError, match="READY has no transition to COMMITTING_TRANSACTION"):
        check_transition(ProducerTransactionState.READY, ProducerTransactionState.COMMITTING_TRANSACTION)


@pytest.mark.behaviour("P7")
@pytest.mark.parametrize("call", ALLOWED)
@pytest.mark.parametrize("state", ProducerTransactionState)
def test_an_invalid_call_names_the_state_the_call_and_the_remedy(call: str, state: ProducerTransactionState) -> None:
    if state in ALLOWED[call]:
        check_call(call, state, None)
        return
    with pytest.raises(IllegalStateError) as caught:
        check_call(call, state, ValueError("the cause"))
    for fact in (f"{call}()", state.name, state.value, "the cause", ": "):
        assert fact in str(caught.value)
    assert "call " in str(caught.value) or "close " in str(caught.value)
