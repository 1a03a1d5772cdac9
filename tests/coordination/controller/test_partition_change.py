"""What becomes of one partition when its brokers come and go and its copies move, as stories and for any that chance draws."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ottla.coordination.cluster.partition_record import changed
from ottla.coordination.cluster.records import NO_LEADER, SAME_LEADER, PartitionChangeRecord
from ottla.coordination.cluster.topic import PartitionState
from ottla.coordination.controller.partition_change import (
    RECOVERED,
    RECOVERING,
    Election,
    Rules,
    Wanted,
    partition_change,
)
from ottla.coordination.controller.reassignment import Copies, begun, completed, copies_of, reverted

ID = UUID(int=5)
UNCLEAN, PREFERRED = Wanted(Election.UNCLEAN), Wanted(Election.PREFERRED)


def partition(
    *replicas: int,
    leader: int | None = None,
    isr: tuple[int, ...] | None = None,
    elr: tuple[int, ...] = (),
    last_known: tuple[int, ...] = (),
    recovery: int = RECOVERED,
) -> PartitionState:
    """Led by its first replica in epoch 4, after nine changes, with all in sync, if nothing else is said."""
    return PartitionState(
        0,
        replicas[0] if leader is None else leader,
        4,
        replicas,
        replicas if isr is None else isr,
        elr,
        9,
        tuple(UUID(int=100 + each) for each in replicas),
        last_known_elr=last_known,
        leader_recovery_state=recovery,
    )


def rules(*living: int, min_isr: int = 1, elr: bool = True) -> Rules:
    return Rules(living.__contains__, min_isr, elr, lambda broker: UUID(int=100 + broker))


def after(state: PartitionState, wanted: Wanted, rules: Rules) -> PartitionState:
    """The partition once the record is replayed."""
    record = partition_change(ID, state, wanted, rules)
    return state if record is None else changed(state, record)


def test_where_nothing_is_wanted_and_all_live_nothing_is_written() -> None:
    assert partition_change(ID, partition(1, 2, 3), Wanted(), rules(1, 2, 3)) is None


def test_the_next_in_sync_leads_in_a_new_epoch_when_the_leader_is_gone() -> None:
    state = after(partition(1, 2, 3), Wanted(isr=(2, 3)), rules(2, 3))
    assert (state.leader, state.leader_epoch, state.isr, state.partition_epoch) == (2, 5, (2, 3), 10)


def test_a_follower_that_falls_out_of_sync_leaves_the_leader_its_epoch() -> None:
    record = partition_change(ID, partition(1, 2, 3), Wanted(isr=(1, 2)), rules(1, 2))
    assert record == PartitionChangeRecord(0, ID, isr=(1, 2))
    assert changed(partition(1, 2, 3), record).leader_epoch == 4


def test_who_leads_goes_on_leading_until_the_preferred_one_is_asked_for() -> None:
    assert partition_change(ID, partition(1, 2, leader=2), Wanted(), rules(1, 2)) is None
    assert after(partition(1, 2, leader=2), PREFERRED, rules(1, 2)).leader == 1


def test_who_is_preferred_and_not_in_sync_does_not_lead() -> None:
    assert partition_change(ID, partition(1, 2, leader=2, isr=(2,)), PREFERRED, rules(1, 2)) is None


def test_who_falls_out_of_sync_while_too_few_are_may_still_lead() -> None:
    state = after(partition(1, 2, 3), Wanted(isr=(1,)), rules(1, min_isr=2))
    assert (state.isr, state.elr) == ((1,), (2, 3))
    state = after(state, Wanted(isr=()), rules(min_isr=2))
    assert (state.leader, state.isr, state.elr, state.last_known_elr) == (NO_LEADER, (), (1, 2, 3), (1,))


def test_one_of_those_that_may_still_lead_does_when_it_is_back() -> None:
    state = after(partition(1, 2, 3, leader=-1, isr=(), elr=(1, 3), last_known=(1,)), Wanted(), rules(3, min_isr=2))
    assert (state.leader, state.isr, state.elr, state.last_known_elr) == (3, (3,), (1,), ())
    assert state.leader_recovery_state == RECOVERED


def test_once_enough_are_in_sync_nobody_else_may_lead() -> None:
    state = after(partition(1, 2, 3, isr=(1,), elr=(2, 3)), Wanted(isr=(1, 2)), rules(1, 2, min_isr=2))
    assert (state.isr, state.elr) == ((1, 2), ())


def test_who_may_have_lost_records_may_not_lead() -> None:
    state = after(partition(1, 2, isr=(1,), elr=(2,)), Wanted(isr=(), lost=(1,)), rules(min_isr=2))
    assert (state.leader, state.isr, state.elr) == (NO_LEADER, (), (2,))


def test_the_last_leader_leads_again_where_nobody_has_everything_and_has_to_recover() -> None:
    state = after(partition(1, 2, leader=-1, isr=(), last_known=(2,)), Wanted(), rules(1, 2, min_isr=2))
    assert (state.leader, state.isr, state.last_known_elr) == (2, (2,), ())
    assert state.leader_recovery_state == RECOVERING


def test_who_was_killed_while_too_few_are_in_sync_leads_where_the_copy_of_the_last_leader_is_gone() -> None:
    state = after(partition(1, 2, 3, isr=(1, 2)), Wanted(isr=(1,), lost=(2,)), rules(1, min_isr=2))
    assert (state.leader, state.elr, state.last_known_elr) == (1, (), (2,))
    state = after(state, Wanted(isr=(), lost=(1,), gone=(1,)), rules(2, 3, min_isr=2))
    assert (state.leader, state.isr, state.last_known_elr, state.leader_recovery_state) == (2, (2,), (), RECOVERING)


def test_the_last_leader_is_waited_for_while_its_copy_may_be_there() -> None:
    state = after(partition(1, 2, isr=(1,), last_known=(2,)), Wanted(isr=(), lost=(1,)), rules(2, min_isr=2))
    assert (state.leader, state.last_known_elr) == (NO_LEADER, (1, 2))
    assert after(state, Wanted(), rules(2, min_isr=2)) == state
    assert after(state, Wanted(gone=(1,)), rules(2, min_isr=2)).leader == 2


def test_once_enough_are_in_sync_who_was_killed_before_is_forgotten() -> None:
    state = after(partition(1, 2, 3, isr=(1,), last_known=(2,)), Wanted(isr=(1, 3)), rules(1, 3, min_isr=2))
    assert (state.isr, state.last_known_elr) == ((1, 3), ())


def test_where_records_may_be_acknowledged_by_one_nobody_takes_the_place_of_a_leader_whose_copy_is_gone() -> None:
    state = after(partition(1, 2), Wanted(isr=(1,), lost=(2,)), rules(1))
    state = after(state, Wanted(isr=(), lost=(1,), gone=(1,)), rules(2))
    assert (state.leader, state.isr, state.last_known_elr) == (NO_LEADER, (), ())


def test_without_leave_to_lose_records_nobody_leads_who_is_not_in_sync() -> None:
    alone = partition(1, 2, isr=(1,))
    assert after(alone, Wanted(isr=()), rules(2, elr=False)).leader == NO_LEADER
    state = after(alone, Wanted(Election.UNCLEAN, isr=()), rules(2, elr=False))
    assert (state.leader, state.isr, state.leader_recovery_state) == (2, (2,), RECOVERING)


def test_without_elr_the_last_in_sync_is_remembered_as_in_sync() -> None:
    state = after(partition(1, 2, isr=(1,)), Wanted(isr=()), rules(elr=False))
    assert (state.leader, state.isr, state.elr) == (NO_LEADER, (1,), ())
    assert after(state, Wanted(), rules(1, elr=False)).leader == 1


def test_the_level_without_elr_strikes_out_who_might_lead() -> None:
    assert after(partition(1, 2, isr=(1,), elr=(2,)), Wanted(), rules(1, 2, min_isr=2, elr=False)).elr == ()


def test_a_leader_has_recovered_when_it_says_so() -> None:
    state = partition(1, 2, isr=(1,), recovery=RECOVERING)
    assert after(state, Wanted(leader_recovery_state=RECOVERED), rules(1, 2)).leader_recovery_state == RECOVERED
    assert partition_change(ID, state, Wanted(leader_recovery_state=RECOVERING), rules(1, 2)) is None


def test_a_move_brings_copies_first_and_takes_away_when_they_are_in_sync() -> None:
    state = partition(1, 2)
    state = after(state, Wanted(copies=begun(state, (2, 3))), rules(1, 2, 3))
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == ((2, 3, 1), (3,), (1,))
    assert (state.leader, state.leader_epoch, state.partition_epoch) == (1, 4, 10)
    state = after(state, Wanted(isr=(1, 2, 3)), rules(1, 2, 3))
    assert (state.replicas, state.isr, state.adding_replicas, state.removing_replicas) == ((2, 3), (2, 3), (), ())
    assert (state.leader, state.leader_epoch) == (2, 5)
    assert state.directories == (UUID(int=102), UUID(int=103))


def test_a_copy_that_is_taken_away_ends_the_leader_s_epoch_even_if_it_did_not_lead() -> None:
    state = after(partition(1, 2), Wanted(copies=begun(partition(1, 2), (1,))), rules(1, 2))
    assert (state.replicas, state.leader, state.leader_epoch) == ((1,), 1, 5)


def test_another_order_of_the_same_copies_is_there_at_once() -> None:
    state = partition(1, 2)
    assert after(state, Wanted(copies=begun(state, (2, 1))), rules(1, 2)).replicas == (2, 1)


def test_a_move_to_fewer_copies_waits_until_all_that_stay_are_in_sync() -> None:
    going = PartitionState(0, 0, 4, (2, 3, 4, 5, 0, 1), (0, 1), removing_replicas=(0, 1), adding_replicas=(5,))
    fewer = copies_of(going)._replace(isr=(0, 1, 5))
    assert completed(fewer) == fewer
    assert completed(fewer._replace(isr=(0, 1, 2, 3, 4, 5))) == Copies((2, 3, 4, 5), (2, 3, 4, 5))


def test_a_move_that_is_given_up_leaves_who_was_there() -> None:
    state = partition(1, 2)
    moving = after(state, Wanted(copies=begun(state, (3, 4))), rules(1, 2, 3, 4))
    copies, loses = reverted(replace(moving, isr=(1, 2, 3)))
    assert (copies, loses) == (Copies((1, 2), (1, 2)), False)
    back = after(moving, Wanted(copies=copies), rules(1, 2, 3, 4))
    assert (back.replicas, back.adding_replicas, back.leader, back.leader_epoch) == ((1, 2), (), 1, 5)


def test_to_give_up_a_move_loses_records_where_only_those_who_came_are_in_sync() -> None:
    moving = replace(partition(3, 1, isr=(3,)), adding_replicas=(3,), removing_replicas=(1,))
    assert reverted(moving) == (Copies((1,), (1,)), True)


def test_who_is_taken_away_by_a_move_may_not_still_lead() -> None:
    moving = replace(partition(4, 1, 2, 3, leader=1, isr=(1, 2, 3)), adding_replicas=(4,), removing_replicas=(1, 2, 3))
    state = after(moving, Wanted(isr=(1, 2, 3, 4)), rules(1, 2, 3, 4, min_isr=2))
    # One copy, and one in sync: three go, so all that stay are asked for.
    assert (state.replicas, state.isr, state.elr, state.leader) == ((4,), (4,), (), 4)


def test_a_copy_lies_where_its_broker_says() -> None:
    record = partition_change(ID, partition(1, 2), Wanted(directories={2: UUID(int=7)}), rules(1, 2))
    assert record == PartitionChangeRecord(0, ID, directories=(UUID(int=101), UUID(int=7)))


BROKERS = range(5)


@st.composite
def states(draw: st.DrawFn) -> PartitionState:
    """Any partition that there may be: in sync or eligible are replicas, who leads is in sync."""
    replicas = tuple(draw(st.lists(st.sampled_from(BROKERS), min_size=1, max_size=4, unique=True)))
    isr = tuple(each for each in replicas if draw(st.booleans()))
    elr = tuple(each for each in replicas if each not in isr and draw(st.booleans()))
    leader = draw(st.sampled_from([*isr, NO_LEADER]))
    known = (draw(st.sampled_from(replicas)),) if leader == NO_LEADER and draw(st.booleans()) else ()
    state = partition(*replicas, leader=leader, isr=isr, elr=elr, last_known=known, recovery=draw(st.integers(0, 1)))
    adding = tuple(sorted(each for each in replicas if each not in isr and draw(st.booleans())))
    removing = tuple(sorted(each for each in replicas if each not in adding and draw(st.booleans())))
    if set(adding) | set(removing) == set(replicas):
        return state
    return replace(state, adding_replicas=adding, removing_replicas=removing)


@st.composite
def wishes(draw: st.DrawFn, state: PartitionState) -> Wanted:
    living = draw(st.booleans())
    isr = tuple(each for each in state.replicas if draw(st.booleans())) if living else None
    move = begun(state, draw(st.permutations(BROKERS))[: draw(st.integers(1, 4))]) if draw(st.booleans()) else None
    return Wanted(draw(st.sampled_from(Election)), isr, move, lost=draw(st.lists(st.sampled_from(BROKERS), max_size=1)))


@st.composite
def changes(draw: st.DrawFn) -> tuple[PartitionState, Wanted, Rules]:
    state = draw(states())
    wanted = draw(wishes(state))
    living = set(draw(st.lists(st.sampled_from(BROKERS), unique=True))) - set(wanted.lost)
    return state, wanted, rules(*living, min_isr=draw(st.integers(1, 3)), elr=draw(st.booleans()))


@given(changes())
def test_who_leads_is_in_sync_and_lives_and_all_are_replicas(drawn: tuple[PartitionState, Wanted, Rules]) -> None:
    state, wanted, rules = drawn
    record = partition_change(ID, state, wanted, rules)
    end = after(state, wanted, rules)
    assert {*end.isr, *end.elr} <= set(end.replicas)
    assert not set(end.isr) & set(end.elr)
    assert len(end.directories) == len(end.replicas) == len(set(end.replicas))
    assert {*end.adding_replicas, *end.removing_replicas} <= set(end.replicas)
    assert end.leader == NO_LEADER or (end.leader in end.isr and rules.may_lead(end.leader))
    if record is not None:
        assert end.partition_epoch == state.partition_epoch + 1


@given(changes())
def test_an_epoch_has_one_leader_and_ends_with_it_and_with_each_copy(
    drawn: tuple[PartitionState, Wanted, Rules],
) -> None:
    state, wanted, rules = drawn
    end = after(state, wanted, rules)
    assert state.leader_epoch <= end.leader_epoch <= state.leader_epoch + 1
    if end.leader != state.leader or not set(state.replicas) <= set(end.replicas):
        assert end.leader_epoch == state.leader_epoch + 1


@given(changes())
def test_what_was_acknowledged_is_lost_only_where_the_leader_is_said_to_recover(
    drawn: tuple[PartitionState, Wanted, Rules],
) -> None:
    state, wanted, rules = drawn
    record = partition_change(ID, state, wanted, rules)
    if record is None or record.leader in (SAME_LEADER, NO_LEADER):
        return
    end = changed(state, record)
    had_everything = {*state.isr, *state.elr, *(wanted.isr or ())}
    assert end.leader_recovery_state == RECOVERING or end.leader in had_everything
    # Who has to recover is in sync with itself alone.
    if record.leader_recovery_state == RECOVERING:
        assert end.isr == (end.leader,)


@given(changes())
def test_with_elr_nobody_who_has_everything_is_forgotten_while_too_few_are_in_sync(
    drawn: tuple[PartitionState, Wanted, Rules],
) -> None:
    state, wanted, rules = drawn
    end = after(state, wanted, rules)
    if not rules.elr:
        assert end.elr == (() if end.isr else tuple(each for each in state.elr if each in end.replicas))
        return
    if len(end.isr) >= rules.min_isr:
        assert end.elr == ()
    elif end.leader_recovery_state == RECOVERED and wanted.isr is None:
        assert {*state.isr, *state.elr} & set(end.replicas) - set(wanted.lost) <= {*end.isr, *end.elr}


@given(changes())
def test_what_is_decided_is_decided_once(drawn: tuple[PartitionState, Wanted, Rules]) -> None:
    state, wanted, rules = drawn
    end = after(state, wanted, rules)
    settled = after(end, Wanted(wanted.election, lost=wanted.lost), rules)
    assert partition_change(ID, settled, Wanted(wanted.election, lost=wanted.lost), rules) is None
