"""Counts the functions and files of Ottla that one operation enters: `python -m tools.call_trace produce|join|create-topics`.

The operation runs once to warm up and is then recorded, from the call until 50 ms after its result, over all threads of the
process, in which the broker runs as well. Hot loops are loaded from their Python source, because compiled functions cannot be
recorded. `--nodes 3` places the operation on a cluster of three nodes, `--functions` lists every function with its file,
`--calls` lists every call in its order.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.broker.settings.config import BrokerConfig
    from ottla.client.admin import NewTopic
    from ottla.client.consumer import Consumer

SOURCES = Path(__file__).parent.parent / "src" / "ottla"
AFTER_SECONDS = 0.05
"""Time after the result that still belongs to the operation: answers to other nodes, deferred work."""
START_SECONDS = 60.0


def load_uncompiled() -> None:
    """Have every module of Ottla imported from its source from now on."""
    hook = FileFinder.path_hook((SourceFileLoader, [".py"]))

    def find_sources(path: str) -> Any:
        if not Path(path).is_relative_to(SOURCES):
            raise ImportError(path)
        return hook(path)

    sys.path_hooks.insert(0, find_sources)
    sys.path_importer_cache.clear()


class CallRecorder:
    """Records which functions are entered while `recording` is open, in every thread started after `install`."""

    def __init__(self) -> None:
        self._entered: list[CodeType] = []
        self._is_recording = False

    def install(self) -> None:
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def uninstall(self) -> None:
        threading.setprofile(None)
        sys.setprofile(None)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record from here until `AFTER_SECONDS` after the block."""
        self._entered.clear()
        self._is_recording = True
        try:
            yield
            time.sleep(AFTER_SECONDS)
        finally:
            self._is_recording = False

    def calls(self) -> list[tuple[str, str]]:
        """Return the file and the qualified name of the function of Ottla that each call entered. A lambda is a function, too."""
        root = f"{SOURCES}{os.sep}"
        return [
            (code.co_filename.removeprefix(root), code.co_qualname)
            for code in self._entered
            if code.co_filename.startswith(root)
        ]

    def _profile(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and self._is_recording:
            self._entered.append(frame.f_code)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.call_trace", description=__doc__.partition(":")[0])
    parser.add_argument("operation", choices=sorted(OPERATIONS))
    parser.add_argument(
        "--nodes",
        type=int,
        choices=(1, 2, 3),
        default=1,
        help="1 broker; 2: one controller and one broker; 3 nodes that are both",
    )
    parser.add_argument("--functions", action="store_true", help="list the functions, by file")
    parser.add_argument("--calls", action="store_true", help="list every call in its order")
    given = parser.parse_args()
    load_uncompiled()
    recorder = CallRecorder()
    recorder.install()
    with ExitStack() as stack:
        address = stack.enter_context(STARTS[given.nodes]())
        OPERATIONS[given.operation](recorder, address, given.nodes)
    recorder.uninstall()
    calls = recorder.calls()
    functions = sorted({*calls})
    files = Counter(file for file, _ in functions)
    if given.calls:
        for file, name in calls:
            print(f"{file} {name}")
    if given.functions:
        for file, names in itertools.groupby(functions, key=lambda function: function[0]):
            print(file)
            for _, name in names:
                print(f"    {name}")
    print(f"{given.operation}, nodes={given.nodes}: {len(functions)} functions in {len(files)} files")


@contextmanager
def start_one() -> Iterator[str]:
    from ottla.broker.embedding.embedded_broker import Broker

    with tempfile.TemporaryDirectory() as folder, Broker(data_dir=folder) as broker:
        yield broker.bootstrap_servers


@contextmanager
def start_controller_and_broker() -> Iterator[str]:
    """A controller and a broker, each with its loop in a thread of this process."""
    from tests.broker.cluster_nodes import BrokerPlace
    from tests.broker.quorum_nodes import Place, new_hosts

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        controller_host, broker_host = new_hosts(2)
        controller = Place(folder, 1, controller_host)
        controller.format([controller.voter])
        broker = BrokerPlace(folder, 2, broker_host, [controller])
        with controller.serving(), serve(broker.config):
            yield broker.address


@contextmanager
def start_three() -> Iterator[str]:
    """Three nodes, each with both roles, all in this process."""
    from ottla.broker.embedding.local_nodes import format_nodes, plan_nodes, read_nodes
    from ottla.clock import SystemClock
    from ottla.free_ports import HeldPorts

    ports = HeldPorts()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        stack.callback(ports.close)
        folder = Path(name)
        format_nodes(folder, plan_nodes(3, ports), {}, SystemClock())
        configs = read_nodes(folder, {})
        with ThreadPoolExecutor(len(configs)) as threads:  # no node is ready before most voters are
            list(threads.map(lambda config: stack.enter_context(serve(config)), configs.values()))
        yield ",".join(str(config.endpoints()[0]).rpartition("/")[2] for config in configs.values())


@contextmanager
def serve(config: BrokerConfig) -> Iterator[None]:
    """Run one node in a thread until the block ends."""
    from ottla.broker.serve import make_server

    server: Any = make_server(config)
    is_ready = threading.Event()
    server.when_ready(is_ready.set)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        if not is_ready.wait(START_SECONDS):
            raise SystemExit(f"node {config.node_id} was not ready after {START_SECONDS:g} s")
        yield
    finally:
        server.stop()
        thread.join()


def trace_produce(recorder: CallRecorder, address: str, nodes: int) -> None:
    """One record with acks=all, from `send` to its result."""
    from ottla.client.producer import Producer

    create_topic(address, "traced", nodes)
    with Producer({"bootstrap.servers": address, "acks": "all"}) as producer:
        for _ in range(20):
            producer.send("traced", b"warm").result(START_SECONDS)
        with recorder.recording():
            producer.send("traced", b"recorded").result(START_SECONDS)


def trace_join(recorder: CallRecorder, address: str, nodes: int) -> None:
    """A consumer joins a group, is assigned the topic and fetches its first record."""
    from ottla.client.consumer import Consumer
    from ottla.client.producer import Producer

    create_topic(address, "traced", nodes)
    with Producer({"bootstrap.servers": address}) as producer:
        producer.send("traced", b"first").result(START_SECONDS)
    settings = {"bootstrap.servers": address, "auto.offset.reset": "earliest"}
    with Consumer({**settings, "group.id": "warm"}) as consumer:
        poll_first_record(consumer)
    with Consumer({**settings, "group.id": "recorded"}) as consumer, recorder.recording():
        poll_first_record(consumer)


def poll_first_record(consumer: Consumer) -> None:
    consumer.subscribe(["traced"])
    deadline = time.monotonic() + START_SECONDS
    while not list(consumer.poll(1.0)):
        if time.monotonic() > deadline:
            raise SystemExit("the consumer received no record")


def trace_create_topics(recorder: CallRecorder, address: str, nodes: int) -> None:
    """An admin client creates a topic."""
    from ottla.client.admin import Admin

    with Admin({"bootstrap.servers": address}) as admin:
        for number in range(3):
            admin.create_topics([new_topic(f"warm-{number}", nodes)])
        with recorder.recording():
            admin.create_topics([new_topic("recorded", nodes)])


def new_topic(name: str, nodes: int) -> NewTopic:
    from ottla.client.admin import NewTopic

    return NewTopic(name, 1, 3 if nodes == 3 else 1)


def create_topic(address: str, name: str, nodes: int) -> None:
    from ottla.client.admin import Admin

    with Admin({"bootstrap.servers": address}) as admin:
        admin.create_topics([new_topic(name, nodes)])


STARTS: dict[int, Callable[[], Any]] = {1: start_one, 2: start_controller_and_broker, 3: start_three}
OPERATIONS: dict[str, Callable[[CallRecorder, str, int], None]] = {
    "create-topics": trace_create_topics,
    "join": trace_join,
    "produce": trace_produce,
}

if __name__ == "__main__":
    main()
