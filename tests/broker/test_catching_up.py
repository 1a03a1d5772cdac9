"""A broker of a cluster answers no client before it knows the cluster."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

from ottla.protocol.messages.create_topics import CreatableTopic
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.cluster_nodes import Begun, BrokerPlace, make_topic
from tests.broker.quorum_nodes import Place, new_hosts
from tests.broker.wire import Wire


def test_who_asks_a_broker_that_is_starting_is_told_of_brokers_and_topics_once_it_knows_them(tmp_path: Path) -> None:
    hosts = new_hosts(2)
    controller = Place(tmp_path, 1, hosts[0])
    controller.format([controller.voter])
    broker = BrokerPlace(tmp_path, 2, hosts[1], [controller])
    question = MetadataRequest([MetadataRequestTopic(name="flights")], False)
    with controller.serving(), closing(Begun(broker)) as first:
        first.wait()
        make_topic(broker, CreatableTopic("flights", 1, 1))
    with ExitStack() as undo:
        second = Begun(broker)
        client = undo.enter_context(Wire(broker.address))
        client.send(question)
        undo.enter_context(controller.serving())
        undo.callback(second.close)
        second.wait()
        _, answer = client.receive(question)
    assert [each.node_id for each in answer.brokers] == [2]
    assert [(each.name, each.error_code, len(each.partitions)) for each in answer.topics] == [("flights", 0, 1)]
