"""`ottla mirror` from Apache Kafka to a broker of ours, and back."""

from __future__ import annotations

from ottla import Broker
from ottla.mirror import Mirror, MirrorSettings, Selection
from tests.mirror.conftest import Side
from tests.mirror.killed_mirror import run_killed


def test_records_and_groups_are_mirrored_to_ours_and_back_through_kills(apache_kafka: str) -> None:
    kafka = Side(apache_kafka)
    kafka.make("to-mirror", retention_ms="-1")
    kafka.send("to-mirror", *map(str, range(100)), headers=[("h", b"1")])
    kafka.commit("mirrored", "to-mirror", 60)
    with Broker() as broker:
        ours = Side(broker.bootstrap_servers)
        for step in (4, 5, 12):  # flushed, recorded, committed
            assert run_killed(kafka.address, ours.address, step, "to-mirror") == -9
        here, there = {"bootstrap.servers": ours.address}, {"bootstrap.servers": kafka.address}
        only = Selection(("to-mirror",), groups=("mirrored",))
        Mirror(MirrorSettings(source=there, target=here, selection=only, once=True)).run()
        assert [(r.value, list(r.headers)) for r in ours.records("to-mirror")] == [
            (str(n).encode(), [("h", b"1")]) for n in range(100)
        ]
        place = ours.committed("mirrored")["to-mirror-0"]
        assert next(r.value for r in ours.records("to-mirror") if r.offset >= place) == b"60"

        back = Selection(("to-mirror",), groups=("mirrored",), prefix="back.")
        for step in (4, 5, 12):
            assert run_killed(ours.address, kafka.address, step, "to-mirror", "back.") == -9
        Mirror(MirrorSettings(source=here, target=there, selection=back, once=True)).run()
    assert kafka.values("back.to-mirror") == [str(n) for n in range(100)]
    place = kafka.committed("mirrored")["back.to-mirror-0"]
    assert next(r.value for r in kafka.records("back.to-mirror") if r.offset >= place) == b"60"
