"""`ottla backup` of Apache Kafka, restored into a broker of ours, and back."""

from __future__ import annotations

from pathlib import Path

from ottla import Admin, Broker, Producer
from ottla.backup import Backup, BackupFolder, BackupSettings, Restore, RestoreSettings, Selection, verify_backup
from ottla.client.admin import ConfigResource
from ottla.model import TopicPartition
from tests.mirror.conftest import Side

ONLY = Selection(("to-back-up",), groups=("backed-up",))


def test_records_offsets_and_groups_return_through_both_brokers(apache_kafka: str, tmp_path: Path) -> None:
    kafka = Side(apache_kafka)
    kafka.make("to-back-up", 2, retention_ms="-1", message_timestamp_type="LogAppendTime")
    kafka.send("to-back-up", *map(str, range(100)), partition=0, headers=[("h", b"1")])
    with Admin(bootstrap_servers=apache_kafka) as admin:
        admin.delete_records({TopicPartition("to-back-up", 0): 40})
    with Producer(bootstrap_servers=apache_kafka, transactional_id="backed-up") as producer:
        producer.init_transactions()
        for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            producer.send("to-back-up", b"t", partition=1).result()
            end()
    kafka.commit("backed-up", "to-back-up", 60)
    before = [(r.partition, r.key, r.value, r.timestamp, list(r.headers)) for r in kafka.records("to-back-up")]
    assert len(before) == 62

    there = {"bootstrap.servers": kafka.address}
    first, second = tmp_path / "kafka", tmp_path / "ours"
    assert Backup(BackupSettings(client=there, folder=first, selection=ONLY)).run().records == 62
    assert verify_backup(BackupFolder(first)).problems == ()
    with Broker() as broker:
        ours, here = Side(broker.bootstrap_servers), {"bootstrap.servers": broker.bootstrap_servers}
        assert Restore(RestoreSettings(client=here, folder=first)).run().records == 62
        found = ours.records("to-back-up")
        assert [(r.partition, r.key, r.value, r.timestamp, list(r.headers)) for r in found] == before
        assert [r.offset for r in found if r.partition == 0] == list(range(40, 100))
        assert ours.committed("backed-up") == {"to-back-up-0": 60}
        Backup(BackupSettings(client=here, folder=second, selection=ONLY, segment_format="parquet")).run()

    messages: list[str] = []
    back = RestoreSettings(client=there, folder=second, prefix="back.")
    assert Restore(back, say=messages.append).run().records == 62
    assert messages == []
    found = kafka.records("back.to-back-up")
    assert [(r.partition, r.key, r.value, r.timestamp, list(r.headers)) for r in found] == before
    assert [r.offset for r in found if r.partition == 0] == list(range(40, 100))
    assert kafka.committed("backed-up")["back.to-back-up-0"] == 60
    with Admin(bootstrap_servers=apache_kafka) as admin:
        (configs,) = admin.describe_configs([ConfigResource("topic", "back.to-back-up")]).values()
    assert configs["message.timestamp.type"].value == "LogAppendTime"
    assert configs["cleanup.policy"].is_default
    assert Restore(back).run().records == 0
