"""Brokers with their disks, and transactions, as the console's page requests them."""

from __future__ import annotations

from threading import Event
from typing import Any
from uuid import UUID

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.client.admin import (
    ClusterDescription,
    LogDirDescription,
    ReplicaInfo,
    TopicDescription,
    TransactionDescription,
    TransactionListing,
)
from ottla.client.producer import Producer
from ottla.console.broker_view import brokers_view
from ottla.console.cluster import ConsoleCluster
from ottla.console.transaction_view import chosen_transactions, transaction_row
from ottla.errors import KafkaError
from ottla.model import Node, PartitionInfo, TopicPartition
from tests.console.conftest import PATIENCE, Browser


def test_a_broker_is_shown_with_what_it_leads_and_its_disk(browser: Browser) -> None:
    browser.order("create-topic", name="kept", partitions=2)
    browser.order("produce", topic="kept", value="x" * 100)
    seen = browser.ask("brokers")
    (broker,) = seen["brokers"]
    (directory,) = broker["directories"]
    assert broker["leads"] == broker["preferred"] == broker["copies"] >= 2
    assert broker["lagging"] == []
    assert directory["bytes"] > 100
    assert 0 < directory["usable"] <= directory["total"]
    assert seen["unseen"] is None


def test_disks_and_topics_are_requested_concurrently(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, begun = ConsoleCluster(broker.client_settings()), Event()
    disks, topics = cluster.second_admin.describe_log_dirs, cluster.admin.describe_topics

    def of_disks(*given: Any) -> Any:
        begun.set()
        return disks(*given)

    def of_topics(*given: Any) -> Any:
        assert begun.wait(PATIENCE)
        return topics(*given)

    monkeypatch.setattr(cluster.second_admin, "describe_log_dirs", of_disks)
    monkeypatch.setattr(cluster.admin, "describe_topics", of_topics)
    assert cluster.brokers()["unseen"] is None
    cluster.close()


def test_an_out_of_sync_broker_is_shown_as_lagging() -> None:
    nodes = (Node(1, "a", 1), Node(2, "b", 1))
    partition = PartitionInfo("t", 0, 1, 0, (1, 2), (1,))
    disk = LogDirDescription({TopicPartition("t", 0): ReplicaInfo(7, 0, True)}, None, None, True)
    topic = TopicDescription("t", UUID(int=0), False, (partition,))
    seen = brokers_view(ClusterDescription(nodes, None, "c"), [topic], {2: {"/d": disk}}, None)
    first, second = seen["brokers"]
    assert (first["leads"], first["lagging"], first["directories"]) == (1, [], [])
    assert (second["leads"], second["lagging"]) == (0, ["t-0"])
    assert [(d["bytes"], d["moving_here"], d["total"]) for d in second["directories"]] == [(7, 1, None)]


def test_an_open_transaction_is_shown_and_its_producer_can_be_fenced(browser: Browser, broker: Broker) -> None:
    browser.order("create-topic", name="paid", partitions=1)
    with Producer(bootstrap_servers=broker.bootstrap_servers, transactional_id="till-<1>") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("paid", b"x").result()
        listed = browser.ask("transactions", text="TILL")
        assert [(t["name"], t["state"]) for t in listed["transactions"]] == [("till-<1>", "Ongoing")]
        assert listed["transactions"][0]["age_ms"] >= 0
        seen = browser.ask("transaction", name="till-<1>")
        assert seen["partitions"] == [{"topic": "paid", "partition": 0, "from": 0}]
        assert browser.order("fence", name="till-<1>") == (200, None)
        with pytest.raises(KafkaError):
            producer.commit_transaction()
    assert browser.ask("transactions", text="nobody")["count"] == 0


def test_ongoing_transactions_are_listed_first_with_their_age() -> None:
    done, open_ = (TransactionListing(n, 1, state, 1) for n, state in (("a", "Empty"), ("b", "Ongoing")))
    assert chosen_transactions([done, open_], "", 1) == (2, [open_])
    described = TransactionDescription("b", 1, "Ongoing", 1, 0, 60_000, 1_000, ())
    assert transaction_row(open_, 4_000, described)["age_ms"] == 3_000
    assert transaction_row(done, 4_000, None)["age_ms"] is None


def test_no_producer_is_fenced_by_get_or_by_a_foreign_origin(browser: Browser) -> None:
    assert browser.send("GET", "/api/fence?name=x")[0] == 405
    assert browser.send("POST", "/api/fence", b"{}", Origin="http://evil.example")[0] == 403
    assert browser.order("fence", name="")[0] == 400
