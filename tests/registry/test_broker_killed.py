"""The broker is killed while several writers register at two servers: no id is given twice, and none is lost."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

from ottla import Broker
from tests.patience import eventually
from tests.registry.running import RegistryClient, running_registry

ROUNDS = 2
EACH = 12
"""The registrations that are acknowledged between two kills."""
PATIENCE = 40.0


class Writers:
    """Threads that register schemas, each until it is acknowledged."""

    def __init__(self, clients: Sequence[RegistryClient]) -> None:
        self.acknowledged: dict[str, int] = {}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._register, args=(client, f"{prefix}{position}n"))
            for position, client in enumerate(clients)
            for prefix in ("a", "b")
        ]

    def __enter__(self) -> Writers:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for each in self._threads:
            each.join(PATIENCE)

    def await_more(self, count: int) -> None:
        """Wait until so many more schemas are acknowledged."""
        before = len(self.acknowledged)
        eventually(lambda: len(self.acknowledged) >= before + count, PATIENCE)

    def _register(self, client: RegistryClient, prefix: str) -> None:
        number = 0
        while not self._stop.is_set():
            name = f"{prefix}{number}"
            try:
                answer = client.register(name, json.dumps({"type": "fixed", "name": name, "size": 1}))
            except OSError:
                continue
            if answer.status == 200:
                self.acknowledged[name] = answer.body["id"]
                number += 1
            else:
                self._stop.wait(0.05)


def test_no_id_is_given_twice_and_none_is_lost_when_the_broker_is_killed(tmp_path: Path) -> None:
    broker = Broker(tmp_path, process=True).start()
    listen = broker.bootstrap_servers
    quick = {"session_timeout_ms": 6_000, "write_timeout_seconds": 5.0}
    try:
        with (
            running_registry(listen, **quick) as first,
            running_registry(listen, **quick) as second,
            Writers([RegistryClient(first.address), RegistryClient(second.address)]) as writers,
        ):
            for _ in range(ROUNDS):
                writers.await_more(EACH)
                os.kill(broker.pid, signal.SIGKILL)
                broker.close()
                broker = Broker(tmp_path, listen=listen, process=True).start()
            writers.await_more(EACH)
        with running_registry(listen, group="another") as fresh:
            client = RegistryClient(fresh.address)
            ids = list(writers.acknowledged.values())
            assert len(set(ids)) == len(ids) >= (ROUNDS + 1) * EACH
            for name, number in writers.acknowledged.items():
                assert client.get(f"/subjects/{name}/versions/1")["id"] == number
                assert json.loads(client.get(f"/schemas/ids/{number}")["schema"])["name"] == name
    finally:
        broker.close()
