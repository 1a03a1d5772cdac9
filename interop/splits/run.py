"""Run one cluster layout to the final comparison. The exit status is 1 if it finds errors, and the history shows them.

It runs inside the namespaces of `network.apart`, which `python -m interop.splits` creates.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from interop.java_programs import compiled, quick_options
from interop.splits import account
from interop.splits.crowd import JAVA, LED, STEADY, TRANSACTIONAL, Crowd, topics_of
from interop.splits.faults import KINDS, SPLITS, Fault, drawn
from interop.splits.history import History
from interop.splits.network import Network, address
from interop.splits.nodes import CONSTELLATIONS, PORT, Node, create_cluster
from interop.splits.standstill import Standstills
from ottla import Admin, NewTopic, TopicPartition
from ottla.errors import OttlaError
from rivals import apache_kafka as rival
from rivals.kafka_cluster import wait_for

PATIENCE = 240.0
MORE = 5
"""The progress of every client between two faults."""


class Stage:
    """A cluster, its clients, and the faults of both."""

    def __init__(self, options: argparse.Namespace, folder: Path, history: History) -> None:
        self.history = history
        self.network: Network
        self.nodes: list[Node]
        self.network, self.nodes = create_cluster(options.constellation, folder)
        self.brokers = [each.node_id for each in self.nodes if each.leads]
        self.servers = ",".join(f"{address(each)}:{PORT}" for each in self.brokers)
        places = [TopicPartition(topic, 0) for name in TRANSACTIONAL for topic in topics_of(name)]
        self.standstills = Standstills(self.servers, places, history)
        self._new_crowd: Callable[[], Crowd] = lambda: Crowd(self.servers, folder, history, options.seed)

    def open(self) -> None:
        for each in self.nodes:
            each.start()
        wait_for(self._is_there, "the brokers come together", PATIENCE)
        self._make_topics()
        self.crowd = self._new_crowd()
        self.crowd.begin()
        self.go_on("the beginning")

    def _is_there(self) -> bool:
        try:
            with Admin(bootstrap_servers=self.servers, request_timeout_ms=3000) as admin:
                return len(admin.describe_cluster().nodes) == len(self.brokers)
        except OttlaError:
            return False

    def _make_topics(self) -> None:
        copies = {node: (node, *(each for each in LED if each != node)) for node in LED}
        topics = [
            NewTopic(topic, replica_assignments={0: copies[node]})
            for name in STEADY + TRANSACTIONAL
            for node, topic in zip(LED, topics_of(name), strict=True)
        ]
        with Admin(bootstrap_servers=self.servers) as admin:
            admin.create_topics([*topics, NewTopic(JAVA, replica_assignments=dict(enumerate(copies.values())))])
        account.wait_in_sync(self.servers, len(LED))

    def go_on(self, after: str) -> None:
        """Wait until every client has made progress, and report the clients that have not."""
        before = self.crowd.progress()
        begun = time.monotonic()

        def behind() -> list[str]:
            time.sleep(0.1)
            self.crowd.tend()
            now = self.crowd.progress()
            return [name for name, count in now.items() if count < before[name] + MORE]

        wait_for(lambda: not behind(), lambda: f"after {after} these stand still: {behind()}", PATIENCE)
        self.history.add(f"all go on, {time.monotonic() - begun:.1f} s after {after}")

    def befall(self, fault: Fault) -> None:
        self.history.add(f"{fault} begins; {self.roles()}")
        victim = self.nodes[fault.node - 1]
        for one, other in fault.cuts([each.node_id for each in self.nodes]):
            self.network.cut(one, other)
        if fault.kind == "killed":
            victim.kill()
        if fault.kind == "frozen":
            victim.signal(signal.SIGSTOP)
        self._pass(fault.seconds)
        if fault.kind == "killed":
            victim.start()
        if fault.kind == "frozen":
            victim.signal(signal.SIGCONT)
        self.network.heal()
        self.history.add(f"{fault} is over")
        self.go_on(str(fault))
        account.wait_in_sync(self.servers, len(LED))

    def _pass(self, seconds: float) -> None:
        """Wait for the duration of a fault. One client may be restarted at half time."""
        end = time.monotonic() + seconds
        time.sleep(seconds / 2)
        self.crowd.restart_somebody()
        while time.monotonic() < end:
            self.crowd.tend()
            time.sleep(0.1)

    def roles(self) -> str:
        """Return the active controller as text for the log."""
        try:
            with Admin(bootstrap_servers=self.servers, request_timeout_ms=3000) as admin:
                return f"controller {admin.describe_metadata_quorum(3).leader_id}"
        except OttlaError as error:
            return f"{type(error).__name__}"

    def close(self) -> bool:
        """Compare and print the results. Returns True if there are no errors."""
        self.crowd.end_writing()
        account.wait_in_sync(self.servers, len(LED))
        tallies = account.accounts(self.servers, self.crowd)
        account.wait_until_read(self.crowd, self.servers)
        self.crowd.end_reading()
        wait_for(
            lambda: not account.differing(self.nodes, self.crowd),
            lambda: str(account.differing(self.nodes, self.crowd)),
        )
        for name, each in tallies.items():
            self.history.add(f"{name}: {self.crowd.progress()[name]} written; {each}")
        lives = self.crowd.lives[-1]
        self.history.add(
            f"{lives.name}: {lives.killed} killed, {lives.fenced} shut out, {len(lives.undead)} not shut out"
        )
        self.history.add(f"failures: {self.crowd.failures()}; skipped: {account.skips(self.crowd)}")
        still = self.standstills
        late = f"{still.late_markers} of them decided"
        self.history.add(f"{still.count} standstills of more than 20 s, {late}, the longest {still.longest:.0f} s")
        return not any(any(each) for each in tallies.values()) and not lives.undead and not account.skips(self.crowd)


def played(options: argparse.Namespace, folder: Path, history: History) -> bool:
    stage = Stage(options, folder, history)
    nodes = [each.node_id for each in stage.nodes]
    stage.open()
    with stage.standstills:
        for fault in drawn(options.seed, options.count, nodes, options.seconds, options.kinds):
            stage.befall(fault)
        return stage.close()


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m interop.splits", description=__doc__)
    parser.add_argument("constellation", choices=CONSTELLATIONS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=8, help="how many things happen")
    parser.add_argument("--seconds", type=spans, default=[3, 8, 14, 40], help="how long each lasts, in turn")
    parser.add_argument("--kinds", type=kinds, default=SPLITS, help=f"of {','.join(KINDS)}")
    parser.add_argument("--keep", type=Path, help="a folder for the nodes' directories and what they say")
    return parser.parse_args(arguments)


def spans(text: str) -> list[float]:
    return [float(each) for each in text.split(",")]


def kinds(text: str) -> list[str]:
    unknown = set(text.split(",")) - set(KINDS)
    if unknown:
        raise argparse.ArgumentTypeError(f"no such kind: {', '.join(sorted(unknown))}")
    return text.split(",")


def end_at_signals() -> None:
    """Exit on SIGTERM and SIGINT, so that all processes of this PID namespace end.

    PID 1 receives only signals that it handles.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda which, _: os._exit(128 + which))


def main() -> None:
    end_at_signals()
    options = parsed(sys.argv[1:])
    rival.options = quick_options()
    compiled()
    history = History(shown=True)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="splits-"))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "clients.out").open("wb") as complaints:
        os.dup2(complaints.fileno(), sys.stderr.fileno())
    try:
        well = played(options, folder, history)
    except Exception:
        history.add(traceback.format_exc())
        well = False
    print(f"{'well' if well else 'NOT WELL'}: {' '.join(sys.argv[1:])}; see {folder}", flush=True)
    # The kernel kills the remaining processes with this process, because it is PID 1 of the namespace.
    os._exit(0 if well else 1)


if __name__ == "__main__":
    main()
