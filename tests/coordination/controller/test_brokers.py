"""Brokers register, beat, are fenced and let in again, stop, and what becomes of their partitions meanwhile."""

from __future__ import annotations

from itertools import permutations
from uuid import UUID

import pytest

from ottla.coordination.cluster.events import FeaturesRequested
from ottla.coordination.cluster.features import OF_A_BROKER, OF_SEVERAL
from ottla.coordination.cluster.node_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ControllerFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
)
from ottla.coordination.cluster.records import PartitionChangeRecord, PartitionRecord, TopicRecord
from ottla.coordination.cluster.topic import LOST
from ottla.coordination.controller.events import Activated, BrokerGone
from ottla.errors import ErrorCode
from ottla.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    RequestDirectoryData,
    RequestPartitionData,
    RequestTopicData,
)
from ottla.protocol.messages.broker_registration import Feature
from ottla.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ottla.protocol.messages.update_features import FeatureUpdateKey
from tests.coordination.controller.cluster import TOPIC, Cluster, directory


def test_a_broker_s_epoch_is_the_offset_of_its_registration() -> None:
    cluster = Cluster()
    answer = cluster.register(1)
    assert (answer.error_code, answer.broker_epoch) == (0, 2)
    record = cluster.log[2]
    assert isinstance(record, RegisterBrokerRecord)
    assert (record.broker_epoch, record.fenced, record.log_dirs) == (2, True, [directory(1)])


def test_a_broker_is_let_in_once_it_knows_of_its_own_registration() -> None:
    cluster = Cluster()
    cluster.register(1)
    behind = cluster.beat(1, offset=1)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    waiting = cluster.beat(1, want_fence=True)
    assert (waiting.is_caught_up, waiting.is_fenced) == (True, True)
    assert not cluster.beat(1).is_fenced
    written = len(cluster.log)
    assert not cluster.beat(1).is_fenced
    assert len(cluster.log) == written, "a heartbeat that changes nothing writes nothing"


def test_a_broker_of_another_cluster_is_refused_and_told_of_both_ids() -> None:
    cluster = Cluster()
    assert cluster.register(1, cluster_id="d").error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert cluster.notes == ["broker 1 is turned away: it belongs to cluster 'd', this one is 'c'"]


def test_a_second_broker_of_a_number_is_refused_while_the_first_is_heard() -> None:
    cluster = Cluster(1)
    assert cluster.register(1, start=2).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.wait(9.0)
    assert cluster.register(1, start=2).error_code == 0


def test_a_broker_that_registers_again_in_the_same_start_keeps_its_epoch() -> None:
    cluster = Cluster(1)
    epoch = cluster.epoch(1)
    assert cluster.register(1, rack="a").broker_epoch == epoch
    known = cluster.controller.metadata.registrations[1]
    assert (known.rack, known.fenced) == ("a", False)


def test_a_broker_that_comes_after_another_directory_s_owner_is_refused() -> None:
    cluster = Cluster(1)
    assert cluster.register(2, log_dirs=[directory(1)]).error_code == ErrorCode.INVALID_REGISTRATION
    assert f"directory {directory(1)} is broker 1's" in cluster.notes[-1]


@pytest.mark.parametrize("places", [[], [UUID(int=1)], [UUID(int=500)] * 2])
def test_directories_that_cannot_be_told_apart_are_refused(places: list[UUID]) -> None:
    assert Cluster().register(1, log_dirs=places).error_code == ErrorCode.INVALID_REGISTRATION


def test_a_broker_that_lacks_a_level_that_the_cluster_runs_is_refused_and_told_which() -> None:
    cluster = Cluster()
    assert (
        cluster.register(1, features=[Feature("metadata.version", 7, 30)]).error_code == ErrorCode.UNSUPPORTED_VERSION
    )
    assert "the cluster runs eligible.leader.replicas.version 1, and it can run 0 to 0" in cluster.notes[-1]
    assert (
        cluster.register(1, features=[Feature("metadata.version", 7, 29)]).error_code == ErrorCode.UNSUPPORTED_VERSION
    )
    nameless = Cluster(elr=False).register(1, features=[Feature("group.version", 0, 1)])
    assert nameless.error_code == ErrorCode.INVALID_REGISTRATION


def test_what_is_wrong_first_in_kafka_s_order_is_told() -> None:
    cluster = Cluster(1)
    assert cluster.register(1, 2, cluster_id="d", log_dirs=[]).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert cluster.register(1, 2, log_dirs=[]).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert cluster.register(2, log_dirs=[], features=[]).error_code == ErrorCode.INVALID_REGISTRATION


def test_a_heartbeat_of_an_earlier_incarnation_counts_nothing() -> None:
    cluster = Cluster(1)
    assert cluster.beat(1, epoch=1).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert cluster.beat(7).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_that_is_silent_is_fenced_and_others_lead() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.topic((1, 2, 3), (2, 3, 1))
    cluster.wait(5)
    cluster.beat(2), cluster.beat(3)
    cluster.wait(4)
    assert (cluster.led(0), cluster.led(1)) == ((2, (2, 3)), (2, (2, 3)))
    assert (cluster.partition(0).leader_epoch, cluster.partition(1).leader_epoch) == (1, 0)
    assert cluster.controller.metadata.registrations[1].fenced
    assert cluster.notes == ["Broker 1 is fenced: it was not heard for 9 s."]


def test_a_broker_that_is_heard_in_time_is_never_fenced() -> None:
    cluster = Cluster(1)
    for _ in range(20):
        cluster.wait(8.9)
        assert not cluster.beat(1).is_fenced
    assert cluster.notes == []


def test_when_all_fall_silent_the_one_that_was_in_sync_last_leads_again_when_it_is_back() -> None:
    cluster = Cluster(1, 2, elr=False)
    cluster.topic((1, 2))
    cluster.wait(1)
    cluster.beat(2)
    cluster.wait(20)
    assert cluster.led() == (-1, (2,))
    cluster.beat(1)
    assert cluster.led() == (-1, (2,)), "who was not in sync last does not lead"
    cluster.beat(2)
    assert cluster.led() == (2, (2,))


def test_with_elr_any_of_those_that_were_in_sync_when_too_few_were_left_may_lead() -> None:
    cluster = Cluster(1, 2, 3, min_isr=2)
    cluster.topic((1, 2, 3))
    cluster.wait(20)
    assert (cluster.led(), cluster.partition().elr) == ((-1, ()), (2, 3))
    cluster.beat(1)
    assert cluster.led() == (-1, ()), "two were still in sync without it"
    cluster.beat(3)
    assert (cluster.led(), cluster.partition().elr) == ((3, (3,)), (2,))


def test_a_broker_that_lost_power_may_not_lead_what_it_was_in_sync_with_last() -> None:
    cluster = Cluster(1, 2, min_isr=2)
    cluster.topic((1, 2))
    cluster.wait(20)
    assert cluster.partition().elr == (1, 2)
    cluster.join(1, start=2, previous_broker_epoch=-1)
    assert (cluster.led(), cluster.partition().elr) == ((-1, ()), (2,))
    cluster.join(2, start=2, previous_broker_epoch=cluster.epoch(2))
    assert cluster.led() == (2, (2,)), "this one was stopped cleanly, and has all"


def test_a_controlled_shutdown_moves_leaders_and_ends_when_the_others_know() -> None:
    cluster = Cluster(1, 2)
    cluster.topic((1, 2), (2, 1))
    leaving = cluster.beat(1, want_shut_down=True)
    assert (leaving.should_shut_down, leaving.is_fenced) == (False, False)
    assert (cluster.led(0), cluster.led(1)) == ((2, (2,)), (2, (2,)))
    assert not cluster.beat(1, want_shut_down=True).should_shut_down, "broker 2 has not heard of it yet"
    cluster.beat(2)
    gone = cluster.beat(1, want_shut_down=True)
    assert (gone.should_shut_down, gone.is_fenced) == (True, True)


def test_a_broker_that_leads_nothing_may_stop_at_once_and_come_back_at_once() -> None:
    cluster = Cluster(1, 2)
    cluster.topic((2, 1))
    epoch = cluster.epoch(1)
    assert cluster.beat(1, want_shut_down=True).should_shut_down
    assert cluster.led() == (2, (2,))
    assert cluster.register(1, start=2, previous_broker_epoch=epoch).error_code == 0


def test_the_broker_of_the_only_copy_may_go_and_leaves_nobody_who_leads() -> None:
    cluster = Cluster(1, elr=False)
    cluster.topic((1,))
    cluster.stop_cleanly(1)
    assert cluster.led() == (-1, (1,))


def test_a_controlled_shutdown_goes_on_under_the_next_controller() -> None:
    cluster = Cluster(1, 2)
    cluster.topic((1, 2))
    cluster.beat(1, want_shut_down=True)
    cluster.fail_over()
    cluster.stop_cleanly(1)
    assert cluster.led() == (2, (2,))
    assert cluster.controller.metadata.registrations[1].fenced


def test_a_new_controller_gives_every_broker_a_fresh_session() -> None:
    cluster = Cluster(1, 2)
    cluster.topic((1, 2))
    cluster.wait(8)
    cluster.fail_over()
    cluster.wait(8)
    assert cluster.led() == (1, (1, 2))
    cluster.beat(2)
    cluster.wait(1)
    assert cluster.led() == (2, (2,))


def test_a_broker_whose_process_has_ended_is_fenced_at_once_and_may_come_back_at_once() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.topic((1, 2, 3))
    epoch = cluster.controller.metadata.registrations[1].epoch
    cluster.happen(BrokerGone(1, epoch - 1))
    assert cluster.led() == (1, (1, 2, 3)), "that was an earlier one"
    cluster.happen(BrokerGone(1, epoch))
    assert cluster.led() == (2, (2, 3))
    assert cluster.notes == ["Broker 1 is fenced: its process has ended."]
    cluster.happen(BrokerGone(1, epoch))
    cluster.happen(BrokerGone(7, 0))
    assert cluster.register(1, start=2).error_code == 0
    assert len(cluster.notes) == 1


def test_a_new_controller_knows_who_was_not_heard_yet() -> None:
    cluster = Cluster(1, 2)
    assert cluster.controller.unheard() == []
    cluster.fail_over()
    assert [each.broker_id for each in cluster.controller.unheard()] == [1, 2]
    cluster.beat(2)
    assert [each.broker_id for each in cluster.controller.unheard()] == [1]


def test_a_broker_that_is_registered_before_a_snapshot_is_let_in_by_the_controller_that_read_it() -> None:
    cluster = Cluster()
    cluster.register(1)
    cluster.fail_over()
    assert cluster.beat(1, offset=1).is_fenced
    assert not cluster.beat(1).is_fenced


def test_a_broker_that_is_struck_off_is_in_sync_nowhere_and_may_lead_nothing() -> None:
    cluster = Cluster(1, 2, min_isr=2)
    cluster.topic((1, 2))
    answer = cluster.ask(UnregisterBrokerRequest(1), UnregisterBrokerResponse)
    assert answer.error_code == 0
    assert (cluster.led(), cluster.partition().elr) == ((2, (2,)), ())
    assert list(cluster.controller.metadata.registrations) == [2]
    again = cluster.ask(UnregisterBrokerRequest(1), UnregisterBrokerResponse)
    assert again.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert again.error_message == "no broker 1 is registered"


def test_copies_in_a_directory_that_is_gone_are_led_by_others_and_the_broker_stays() -> None:
    cluster = Cluster(2)
    places = [directory(1), UUID(int=501)]
    cluster.join(1, log_dirs=places)
    cluster.topic((1, 2))
    assert not cluster.beat(1, offline_log_dirs=[directory(1)]).is_fenced
    assert cluster.led() == (2, (2,))
    assert cluster.controller.metadata.registrations[1].log_dirs == (UUID(int=501),)
    written = len(cluster.log)
    cluster.beat(1, offline_log_dirs=[directory(1)])
    assert len(cluster.log) == written


def test_a_broker_that_is_let_in_without_its_directory_does_not_lead_what_lies_there() -> None:
    cluster = Cluster(1, elr=False)
    cluster.topic((1,))
    cluster.wait(20)
    cluster.beat(1, offline_log_dirs=[directory(1)])
    assert cluster.led() == (-1, (1,))


def test_cordoned_directories_are_written_once() -> None:
    cluster = Cluster(1)
    cluster.beat(1, cordoned_log_dirs=[directory(1)])
    assert cluster.log[-1] == BrokerRegistrationChangeRecord(1, cluster.epoch(1), cordoned_log_dirs=[directory(1)])
    written = len(cluster.log)
    cluster.beat(1, cordoned_log_dirs=[directory(1)])
    assert len(cluster.log) == written


def test_a_controller_says_where_it_is() -> None:
    cluster = Cluster()
    levels = [Feature(name, *levels) for name, levels in OF_A_BROKER.items()]
    request = ControllerRegistrationRequest(9, UUID(int=9), features=levels)
    answer = cluster.ask(request, ControllerRegistrationResponse)
    assert answer.error_code == 0
    assert cluster.controller.metadata.controllers[9].incarnation_id == UUID(int=9)


def test_a_controller_that_cannot_run_what_the_cluster_runs_is_not_put_on_the_list() -> None:
    cluster = Cluster()
    request = ControllerRegistrationRequest(9, UUID(int=9), features=[Feature("metadata.version", 7, 17)])
    answer = cluster.ask(request, ControllerRegistrationResponse)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert "and it can run 7 to 17" in (answer.error_message or "")
    assert not cluster.controller.metadata.controllers


def test_a_level_is_refused_that_a_controller_cannot_run() -> None:
    cluster = Cluster()
    cluster.write([RegisterControllerRecord(9, UUID(int=9), features=[ControllerFeature("group.version", 0, 0)])])
    refusal = cluster.happen(FeaturesRequested(1, [FeatureUpdateKey("group.version", 1)]))
    assert "group.version 1 is more than controller 9 can run, which knows 0 to 0" in str(refusal)


def test_the_first_controller_of_a_cluster_says_what_it_runs_and_the_next_ones_do_not() -> None:
    cluster = Cluster.empty()
    cluster.fail_over()
    assert cluster.controller.metadata.features == OF_SEVERAL
    written = len(cluster.log)
    cluster.fail_over()
    assert len(cluster.log) == written


def test_a_transaction_that_another_controller_left_open_is_aborted() -> None:
    cluster = Cluster(1)
    cluster.write([BeginTransactionRecord(), UnregisterBrokerRecord(1, cluster.epoch(1))])
    cluster.happen(Activated())
    assert isinstance(cluster.log[-1], AbortTransactionRecord)
    assert list(cluster.controller.metadata.registrations) == [1]


@pytest.mark.behaviour("B5")
@pytest.mark.parametrize("leader", [1, 2, 3])
@pytest.mark.parametrize("order", list(permutations((1, 2, 3))))
def test_whichever_disk_of_three_killed_brokers_is_emptied_another_leads_in_whatever_order_they_come(
    order: tuple[int, ...], leader: int
) -> None:
    others = [each for each in (1, 2, 3) if each != leader]
    for emptied in (1, 2, 3):
        cluster = Cluster(1, 2, 3, min_isr=2)
        cluster.topic((leader, *others))
        cluster.fail_over()
        cluster.wait(20)
        for broker in order:
            new = {"log_dirs": [UUID(int=300)]} if broker == emptied else {}
            assert not cluster.register(broker, 2, **new).error_code
            cluster.beat(broker)
            assert cluster.led()[0] != emptied or broker != emptied
        for broker in order:
            cluster.beat(broker)
        found, in_sync = cluster.led()
        assert found in {1, 2, 3} - {emptied}
        assert emptied not in in_sync


@pytest.mark.parametrize("order", list(permutations((1, 2, 3))))
def test_who_has_lost_what_was_committed_and_says_so_gives_way_to_one_who_had_everything_while_there_is_one(
    order: tuple[int, ...],
) -> None:
    cluster = Cluster(1, 2, 3, min_isr=2)
    cluster.topic((1, 2, 3))
    cluster.fail_over()
    cluster.wait(20)
    for broker in order:
        assert not cluster.register(broker, 2).error_code
        cluster.beat(broker)
    for broker in order:
        cluster.beat(broker)
    first = cluster.led()[0]
    lies_in(cluster, first, LOST)
    second, in_sync = cluster.led()
    assert second not in (first, -1)
    assert in_sync == (second,)
    lies_in(cluster, second, LOST)
    assert cluster.led()[0] == -1
    lies_in(cluster, second, directory(second))
    assert cluster.led()[0] == second


def lies_in(cluster: Cluster, broker: int, place: UUID) -> None:
    """It says where its copy is."""
    told = RequestDirectoryData(place, [RequestTopicData(TOPIC, [RequestPartitionData(0)])])
    answer = cluster.ask(
        AssignReplicasToDirsRequest(broker, cluster.epoch(broker), [told]), AssignReplicasToDirsResponse
    )
    assert not answer.error_code


def test_a_copy_in_a_directory_that_is_gone_leads_by_itself_where_there_is_no_other() -> None:
    cluster = Cluster(1)
    cluster.topic((1,))
    cluster.wait(20)
    cluster.join(1, 2, log_dirs=[UUID(int=300)])
    assert cluster.led()[0] == -1
    told = RequestDirectoryData(UUID(int=300), [RequestTopicData(TOPIC, [RequestPartitionData(0)])])
    cluster.ask(AssignReplicasToDirsRequest(1, cluster.epoch(1), [told]), AssignReplicasToDirsResponse)
    assert cluster.led() == (1, (1,))


def test_where_all_directories_are_gone_somebody_may_have_the_partition_begin_anew() -> None:
    cluster = Cluster(1, 2, min_isr=2)
    cluster.topic((1, 2))
    cluster.wait(20)
    for broker in (1, 2):
        cluster.join(broker, 2, log_dirs=[UUID(int=300 + broker)])
    assert cluster.led()[0] == -1
    asked = ElectLeadersRequest(1, [TopicPartitions("t", [0])])
    answer = cluster.ask(asked, ElectLeadersResponse)
    assert [each.error_code for each in answer.replica_election_results[0].partition_result] == [0]
    assert cluster.led() == (1, (1,))


DISKS = [directory(2), directory(3)]


@pytest.mark.parametrize(("min_isr", "leads"), [(2, 3), (1, -1)])
def test_where_who_was_elected_loses_its_disk_before_others_have_followed_it_the_next_one_leads_that_had_everything(
    min_isr: int, leads: int
) -> None:
    """Where one in sync is enough, it may have acknowledged what nobody else has."""
    cluster = Cluster(1, 2, 3, min_isr=min_isr)
    cluster.write([TopicRecord("t", TOPIC), PartitionRecord(0, TOPIC, [2, 3], [], leader=-1, directories=DISKS)])
    cluster.write([PartitionChangeRecord(0, TOPIC, last_known_elr=[2, 3])])
    cluster.wait(20)
    for broker in (2, 3):
        assert not cluster.register(broker, start=2).error_code
    cluster.beat(2)
    assert (cluster.led(), cluster.partition().leader_recovery_state) == ((2, (2,)), 1)
    cluster.wait(20)
    assert not cluster.register(2, start=3, log_dirs=[UUID(int=301)]).error_code
    cluster.beat(3)
    assert cluster.partition().leader == leads
