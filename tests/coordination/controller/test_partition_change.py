"""The state of one partition when brokers fail and return and replicas are reassigned, as examples and for random
states.
"""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ottla.coordination.cluster.partition_record import apply_change
from ottla.coordination.cluster.records import NO_LEADER, SAME_LEADER, PartitionChangeRecord
from ottla.coordination.cluster.topic import PartitionState
from ottla.coordination.controller.partition_change import (
    RECOVERED,
    RECOVERING,
    ElectionRules,
    ElectionType,
    RequestedChange,
    decide_change,
)
from ottla.coordination.controller.reassignment import (
    PartitionReplicas,
    complete_reassignment,
    read_replicas,
    revert_reassignment,
    start_reassignment,
)

ID = UUID(int=5)
UNCLEAN, PREFERRED = RequestedChange(ElectionType.UNCLEAN), RequestedChange(ElectionType.PREFERRED)


def partition(
    *replicas: int,
    leader: int | None = None,
    isr: tuple[int, ...] | None = None,
    elr: tuple[int, ...] = (),
    last_known: tuple[int, ...] = (),
    recovery: int = RECOVERED,
) -> PartitionState:
    """Return a partition led by its first replica in epoch 4, after nine changes, with all replicas in the ISR, unless
    other values are given.
    """
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


def rules(*living: int, min_isr: int = 1, elr: bool = True) -> ElectionRules:
    return ElectionRules(living.__contains__, min_isr, elr, lambda broker: UUID(int=100 + broker))


def after(state: PartitionState, wanted: RequestedChange, rules: ElectionRules) -> PartitionState:
    """The partition once the record is replayed."""
    record = decide_change(ID, state, wanted, rules)
    return state if record is None else apply_change(state, record)


def test_nothing_is_written_if_nothing_is_requested_and_all_replicas_are_active() -> None:
    assert decide_change(ID, partition(1, 2, 3), RequestedChange(), rules(1, 2, 3)) is None


def test_the_next_isr_member_leads_in_a_new_epoch_when_the_leader_fails() -> None:
    state = after(partition(1, 2, 3), RequestedChange(isr=(2, 3)), rules(2, 3))
    assert (state.leader, state.leader_epoch, state.isr, state.partition_epoch) == (2, 5, (2, 3), 10)


def test_the_leader_epoch_is_kept_when_a_follower_leaves_the_isr() -> None:
    record = decide_change(ID, partition(1, 2, 3), RequestedChange(isr=(1, 2)), rules(1, 2))
    assert record == PartitionChangeRecord(0, ID, isr=(1, 2))
    assert apply_change(partition(1, 2, 3), record).leader_epoch == 4


def test_the_leader_stays_until_the_preferred_leader_is_requested() -> None:
    assert decide_change(ID, partition(1, 2, leader=2), RequestedChange(), rules(1, 2)) is None
    assert after(partition(1, 2, leader=2), PREFERRED, rules(1, 2)).leader == 1


def test_a_preferred_replica_outside_the_isr_is_not_elected() -> None:
    assert decide_change(ID, partition(1, 2, leader=2, isr=(2,)), PREFERRED, rules(1, 2)) is None


def test_a_replica_that_leaves_an_isr_below_min_isr_can_be_elected() -> None:
    state = after(partition(1, 2, 3), RequestedChange(isr=(1,)), rules(1, min_isr=2))
    assert (state.isr, state.elr) == ((1,), (2, 3))
    state = after(state, RequestedChange(isr=()), rules(min_isr=2))
    assert (state.leader, state.isr, state.elr, state.last_known_elr) == (NO_LEADER, (), (1, 2, 3), (1,))


def test_a_member_of_the_elr_is_elected_when_it_returns() -> None:
    state = after(
        partition(1, 2, 3, leader=-1, isr=(), elr=(1, 3), last_known=(1,)), RequestedChange(), rules(3, min_isr=2)
    )
    assert (state.leader, state.isr, state.elr, state.last_known_elr) == (3, (3,), (1,), ())
    assert state.leader_recovery_state == RECOVERED


def test_with_an_isr_of_min_isr_replicas_outside_it_cannot_be_elected() -> None:
    state = after(partition(1, 2, 3, isr=(1,), elr=(2, 3)), RequestedChange(isr=(1, 2)), rules(1, 2, min_isr=2))
    assert (state.isr, state.elr) == ((1, 2), ())


def test_a_replica_that_may_lack_records_is_not_elected() -> None:
    state = after(partition(1, 2, isr=(1,), elr=(2,)), RequestedChange(isr=(), incomplete=(1,)), rules(min_isr=2))
    assert (state.leader, state.isr, state.elr) == (NO_LEADER, (), (2,))


def test_the_last_leader_is_elected_with_recovery_if_no_complete_replica_is_left() -> None:
    state = after(partition(1, 2, leader=-1, isr=(), last_known=(2,)), RequestedChange(), rules(1, 2, min_isr=2))
    assert (state.leader, state.isr, state.last_known_elr) == (2, (2,), ())
    assert state.leader_recovery_state == RECOVERING


def test_a_replica_killed_below_min_isr_is_elected_if_the_log_of_the_last_leader_is_lost() -> None:
    state = after(partition(1, 2, 3, isr=(1, 2)), RequestedChange(isr=(1,), incomplete=(2,)), rules(1, min_isr=2))
    assert (state.leader, state.elr, state.last_known_elr) == (1, (), (2,))
    state = after(state, RequestedChange(isr=(), incomplete=(1,), empty=(1,)), rules(2, 3, min_isr=2))
    assert (state.leader, state.isr, state.last_known_elr, state.leader_recovery_state) == (2, (2,), (), RECOVERING)


def test_the_last_leader_is_waited_for_while_its_log_may_exist() -> None:
    state = after(
        partition(1, 2, isr=(1,), last_known=(2,)), RequestedChange(isr=(), incomplete=(1,)), rules(2, min_isr=2)
    )
    assert (state.leader, state.last_known_elr) == (NO_LEADER, (1, 2))
    assert after(state, RequestedChange(), rules(2, min_isr=2)) == state
    assert after(state, RequestedChange(empty=(1,)), rules(2, min_isr=2)).leader == 2


def test_with_an_isr_of_min_isr_replicas_killed_before_are_forgotten() -> None:
    state = after(partition(1, 2, 3, isr=(1,), last_known=(2,)), RequestedChange(isr=(1, 3)), rules(1, 3, min_isr=2))
    assert (state.isr, state.last_known_elr) == ((1, 3), ())


def test_with_min_isr_1_no_replica_replaces_a_leader_whose_log_is_lost() -> None:
    state = after(partition(1, 2), RequestedChange(isr=(1,), incomplete=(2,)), rules(1))
    state = after(state, RequestedChange(isr=(), incomplete=(1,), empty=(1,)), rules(2))
    assert (state.leader, state.isr, state.last_known_elr) == (NO_LEADER, (), ())


def test_without_unclean_elections_only_isr_members_are_elected() -> None:
    alone = partition(1, 2, isr=(1,))
    assert after(alone, RequestedChange(isr=()), rules(2, elr=False)).leader == NO_LEADER
    state = after(alone, RequestedChange(ElectionType.UNCLEAN, isr=()), rules(2, elr=False))
    assert (state.leader, state.isr, state.leader_recovery_state) == (2, (2,), RECOVERING)


def test_without_elr_the_last_isr_member_stays_in_the_isr() -> None:
    state = after(partition(1, 2, isr=(1,)), RequestedChange(isr=()), rules(elr=False))
    assert (state.leader, state.isr, state.elr) == (NO_LEADER, (1,), ())
    assert after(state, RequestedChange(), rules(1, elr=False)).leader == 1


def test_disabling_elr_clears_the_elr() -> None:
    assert after(partition(1, 2, isr=(1,), elr=(2,)), RequestedChange(), rules(1, 2, min_isr=2, elr=False)).elr == ()


def test_a_leader_ends_its_recovery_by_a_request() -> None:
    state = partition(1, 2, isr=(1,), recovery=RECOVERING)
    assert (
        after(state, RequestedChange(leader_recovery_state=RECOVERED), rules(1, 2)).leader_recovery_state == RECOVERED
    )
    assert decide_change(ID, state, RequestedChange(leader_recovery_state=RECOVERING), rules(1, 2)) is None


def test_a_reassignment_adds_replicas_and_removes_the_old_ones_when_the_new_are_in_the_isr() -> None:
    state = partition(1, 2)
    state = after(state, RequestedChange(replicas=start_reassignment(state, (2, 3))), rules(1, 2, 3))
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == ((2, 3, 1), (3,), (1,))
    assert (state.leader, state.leader_epoch, state.partition_epoch) == (1, 4, 10)
    state = after(state, RequestedChange(isr=(1, 2, 3)), rules(1, 2, 3))
    assert (state.replicas, state.isr, state.adding_replicas, state.removing_replicas) == ((2, 3), (2, 3), (), ())
    assert (state.leader, state.leader_epoch) == (2, 5)
    assert state.directories == (UUID(int=102), UUID(int=103))


def test_a_removed_replica_starts_a_new_leader_epoch_even_if_it_did_not_lead() -> None:
    state = after(partition(1, 2), RequestedChange(replicas=start_reassignment(partition(1, 2), (1,))), rules(1, 2))
    assert (state.replicas, state.leader, state.leader_epoch) == ((1,), 1, 5)


def test_a_reassignment_to_another_order_completes_at_once() -> None:
    state = partition(1, 2)
    assert after(state, RequestedChange(replicas=start_reassignment(state, (2, 1))), rules(1, 2)).replicas == (2, 1)


def test_a_reassignment_to_fewer_replicas_waits_until_all_remaining_are_in_the_isr() -> None:
    going = PartitionState(0, 0, 4, (2, 3, 4, 5, 0, 1), (0, 1), removing_replicas=(0, 1), adding_replicas=(5,))
    fewer = read_replicas(going)._replace(isr=(0, 1, 5))
    assert complete_reassignment(fewer) == fewer
    assert complete_reassignment(fewer._replace(isr=(0, 1, 2, 3, 4, 5))) == PartitionReplicas(
        (2, 3, 4, 5), (2, 3, 4, 5)
    )


def test_a_cancelled_reassignment_keeps_the_original_replicas() -> None:
    state = partition(1, 2)
    moving = after(state, RequestedChange(replicas=start_reassignment(state, (3, 4))), rules(1, 2, 3, 4))
    copies, loses = revert_reassignment(replace(moving, isr=(1, 2, 3)))
    assert (copies, loses) == (PartitionReplicas((1, 2), (1, 2)), False)
    back = after(moving, RequestedChange(replicas=copies), rules(1, 2, 3, 4))
    assert (back.replicas, back.adding_replicas, back.leader, back.leader_epoch) == ((1, 2), (), 1, 5)


def test_cancelling_loses_records_if_only_added_replicas_are_in_the_isr() -> None:
    moving = replace(partition(3, 1, isr=(3,)), adding_replicas=(3,), removing_replicas=(1,))
    assert revert_reassignment(moving) == (PartitionReplicas((1,), (1,)), True)


def test_a_replica_removed_by_a_reassignment_is_not_in_the_elr() -> None:
    moving = replace(partition(4, 1, 2, 3, leader=1, isr=(1, 2, 3)), adding_replicas=(4,), removing_replicas=(1, 2, 3))
    state = after(moving, RequestedChange(isr=(1, 2, 3, 4)), rules(1, 2, 3, 4, min_isr=2))
    # One ISR member, and three replicas are removed: all remaining ones have to be in the ISR.
    assert (state.replicas, state.isr, state.elr, state.leader) == ((4,), (4,), (), 4)


def test_a_change_sets_the_directory_of_a_replica() -> None:
    record = decide_change(ID, partition(1, 2), RequestedChange(directories={2: UUID(int=7)}), rules(1, 2))
    assert record == PartitionChangeRecord(0, ID, directories=(UUID(int=101), UUID(int=7)))


BROKERS = range(5)


@st.composite
def states(draw: st.DrawFn) -> PartitionState:
    """Any valid partition: ISR and ELR are subsets of the replicas, the leader is in the ISR."""
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
def requested_changes(draw: st.DrawFn, state: PartitionState) -> RequestedChange:
    living = draw(st.booleans())
    isr = tuple(each for each in state.replicas if draw(st.booleans())) if living else None
    move = (
        start_reassignment(state, draw(st.permutations(BROKERS))[: draw(st.integers(1, 4))])
        if draw(st.booleans())
        else None
    )
    return RequestedChange(
        draw(st.sampled_from(ElectionType)), isr, move, incomplete=draw(st.lists(st.sampled_from(BROKERS), max_size=1))
    )


@st.composite
def changes(draw: st.DrawFn) -> tuple[PartitionState, RequestedChange, ElectionRules]:
    state = draw(states())
    wanted = draw(requested_changes(state))
    living = set(draw(st.lists(st.sampled_from(BROKERS), unique=True))) - set(wanted.incomplete)
    return state, wanted, rules(*living, min_isr=draw(st.integers(1, 3)), elr=draw(st.booleans()))


@given(changes())
def test_the_leader_is_active_and_in_the_isr_which_is_a_subset_of_the_replicas(
    drawn: tuple[PartitionState, RequestedChange, ElectionRules],
) -> None:
    state, wanted, rules = drawn
    record = decide_change(ID, state, wanted, rules)
    end = after(state, wanted, rules)
    assert {*end.isr, *end.elr} <= set(end.replicas)
    assert not set(end.isr) & set(end.elr)
    assert len(end.directories) == len(end.replicas) == len(set(end.replicas))
    assert {*end.adding_replicas, *end.removing_replicas} <= set(end.replicas)
    assert end.leader == NO_LEADER or (end.leader in end.isr and rules.can_lead(end.leader))
    if record is not None:
        assert end.partition_epoch == state.partition_epoch + 1


@given(changes())
def test_the_leader_epoch_increases_by_one_with_another_leader_or_a_removed_replica(
    drawn: tuple[PartitionState, RequestedChange, ElectionRules],
) -> None:
    state, wanted, rules = drawn
    end = after(state, wanted, rules)
    assert state.leader_epoch <= end.leader_epoch <= state.leader_epoch + 1
    if end.leader != state.leader or not set(state.replicas) <= set(end.replicas):
        assert end.leader_epoch == state.leader_epoch + 1


@given(changes())
def test_acknowledged_records_are_lost_only_with_a_leader_in_recovery(
    drawn: tuple[PartitionState, RequestedChange, ElectionRules],
) -> None:
    state, wanted, rules = drawn
    record = decide_change(ID, state, wanted, rules)
    if record is None or record.leader in (SAME_LEADER, NO_LEADER):
        return
    end = apply_change(state, record)
    had_everything = {*state.isr, *state.elr, *(wanted.isr or ())}
    assert end.leader_recovery_state == RECOVERING or end.leader in had_everything
    # A leader in recovery is alone in the ISR.
    if record.leader_recovery_state == RECOVERING:
        assert end.isr == (end.leader,)


@given(changes())
def test_with_elr_no_complete_replica_is_forgotten_while_the_isr_is_below_min_isr(
    drawn: tuple[PartitionState, RequestedChange, ElectionRules],
) -> None:
    state, wanted, rules = drawn
    end = after(state, wanted, rules)
    if not rules.is_elr_enabled:
        assert end.elr == (() if end.isr else tuple(each for each in state.elr if each in end.replicas))
        return
    if len(end.isr) >= rules.min_isr:
        assert end.elr == ()
    elif end.leader_recovery_state == RECOVERED and wanted.isr is None:
        assert {*state.isr, *state.elr} & set(end.replicas) - set(wanted.incomplete) <= {*end.isr, *end.elr}


@given(changes())
def test_a_repeated_decision_changes_nothing(drawn: tuple[PartitionState, RequestedChange, ElectionRules]) -> None:
    state, wanted, rules = drawn
    end = after(state, wanted, rules)
    settled = after(end, RequestedChange(wanted.election, incomplete=wanted.incomplete), rules)
    assert decide_change(ID, settled, RequestedChange(wanted.election, incomplete=wanted.incomplete), rules) is None
