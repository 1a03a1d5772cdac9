"""A broker in a process of its own, controlled by the process that started it.

A pipe connects the two: when the parent closes it, or ends for any reason, the broker shuts down. The first line in the
pipe is the broker's configuration; the first line back is "ready", or the error. Each further line is an order,
answered once it is done: to wait for metadata of other brokers of the cluster, or to simulate a network partition.
"""

from __future__ import annotations

import json
import logging
import os
import select
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ottla.broker.settings.config import BrokerConfig, read_config
from ottla.errors import ConfigError, OttlaError
from ottla.log_format import EscapingFormatter

BOOT = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT, signal.SIGTERM])
import json, sys
job = json.loads(sys.stdin.buffer.raw.readline() or sys.exit())
sys.path[:] = job["path"]
from ottla.broker.embedding.broker_process import run_broker
run_broker(job)
"""
"""Ctrl-C reaches all processes of a terminal. This one ignores it from its first moment on: its parent decides."""
FAILED = 1
"""The exit status of a broker that could not start, or had to stop by itself."""
KILL_AFTER_SECONDS = 5.0
PARENT_CHECK_SECONDS = 1.0
LOOK_SECONDS = 0.01
"""The interval between two checks for metadata of other brokers."""
HAND_OVER_SECONDS = 2.0
"""The time for handing over when the parent closes the pipe of a broker in a cluster."""
LOGGERS = ("ottla", "ottla.request")

log = logging.getLogger(__name__)


class BrokerProcess:
    def __init__(self, config: BrokerConfig, *, wait: bool = True) -> None:
        """Start the process and wait until it is ready.

        Raise OttlaError if it fails. Without `wait`, call `wait_until_ready` later.
        """
        levels = {name: logging.getLogger(name).getEffectiveLevel() for name in LOGGERS}
        job: dict[str, Any] = {"config": config.explicit(), "path": sys.path, "parent": os.getpid(), "levels": levels}
        with block_interrupts():
            self._process = subprocess.Popen(
                [sys.executable, "-c", BOOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
        self.addresses: dict[str, str] = {}
        self._send_order(job)
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Raise OttlaError if the process has failed to start."""
        try:
            self.addresses = self._read_line()
        except BaseException:
            self.request_stop()
            self.close(KILL_AFTER_SECONDS)
            raise

    def has_met(self, others: Iterable[int], timeout: float) -> bool:
        """Wait until the broker has metadata of these live brokers; False after `timeout` seconds."""
        self._send_order({"meet": list(others)})
        return "met" in self._read_answer(timeout)

    def isolate(self, places: Iterable[tuple[str, int]], timeout: float) -> bool:
        """Simulate a network partition from these addresses, and from no others; False if it is not applied within `timeout` seconds."""
        self._send_order({"apart": list(places)})
        return "apart" in self._read_answer(timeout)

    @property
    def pid(self) -> int:
        """The number of the broker's process."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """End it on the spot, as when its machine loses power."""
        self._process.kill()
        self.close(KILL_AFTER_SECONDS)

    def request_stop(self) -> None:
        """Start a controlled shutdown, and do not wait for it."""
        self._process.terminate()

    def has_ended(self, timeout: float) -> bool:
        """Wait for the end of the process; False after `timeout` seconds."""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def disown(self) -> None:
        """Start a shutdown, without handing over if one was started before. Does not wait. May be called again."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def close(self, timeout: float) -> None:
        """Shut down and wait. After `timeout` seconds the process is killed, which loses no acknowledged record."""
        process = self._process
        self.disown()
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            log.warning("the broker's process %d did not stop within %g s and is killed", process.pid, timeout)
            process.kill()
            process.wait(KILL_AFTER_SECONDS)

    def _send_order(self, job: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(job, default=lambda secret: secret.value).encode() + b"\n")
        except BrokenPipeError:
            pass  # the process has ended, which the missing answer shows

    def _read_answer(self, timeout: float) -> dict[str, Any]:
        """Return the next line of the process; empty after `timeout` seconds or at its end."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:  # select() takes no descriptor above 1023
            selector.register(self._process.stdout, selectors.EVENT_READ)
            readable = selector.select(timeout)
        return dict(json.loads(self._process.stdout.readline() or "{}")) if readable else {}

    def _read_line(self) -> dict[str, str]:
        assert self._process.stdout is not None
        answer = json.loads(self._process.stdout.readline() or "{}")
        if "ready" in answer:
            return dict(answer["ready"])
        if "error" in answer:
            raise (ConfigError if answer["config"] else OttlaError)(answer["error"])
        status = self._process.wait(KILL_AFTER_SECONDS)
        raise OttlaError(f"the broker's process ended with status {status} before it was ready")


@contextmanager
def block_interrupts() -> Iterator[None]:
    """Block SIGINT and SIGTERM in this thread, and in processes that are started meanwhile.

    Pending signals are delivered afterwards.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run_broker(job: dict[str, Any]) -> None:
    """Run the child's side: serve until the parent closes the pipe."""
    from ottla.broker.serve import Serves, serve

    handler = logging.StreamHandler()
    handler.setFormatter(EscapingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
    for name, level in job["levels"].items():
        logging.getLogger(name).setLevel(level)

    def report_started(server: Serves) -> None:
        threading.Thread(target=watch_parent, args=(server, job["parent"]), daemon=True).start()

    def ready(server: Serves) -> None:
        print_answer({"ready": server.addresses})

    try:
        serve(read_config(job["config"]), ready, (signal.SIGTERM,), report_started)
    except OttlaError as error:
        print_answer({"error": str(error), "config": isinstance(error, ConfigError)})
        sys.exit(FAILED)


def print_answer(answer: dict[str, Any]) -> None:
    """Answer the parent, which may have ended."""
    try:
        os.write(1, json.dumps(answer).encode() + b"\n")
    except BrokenPipeError:
        pass


def watch_parent(server: Any, parent: int) -> None:
    """Execute the parent's orders. Stop the broker when the parent closes its end of the pipe, or ends.

    The second case is a parent that has forked: its children hold the pipe open.
    """
    while os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], PARENT_CHECK_SECONDS)
        lines = os.read(0, 4096).splitlines() if readable else []
        if readable and not lines:
            break
        for line in lines:
            execute_order(server, json.loads(line))
    server.stop()
    time.sleep(HAND_OVER_SECONDS)
    server.stop()  # at once, without waiting for the handover


def execute_order(server: Any, order: dict[str, Any]) -> None:
    """Execute an order of the parent, and confirm it."""
    if "meet" in order:
        await_brokers(server, set(order["meet"]))
    else:
        isolate_nodes(server, [(host, port) for host, port in order["apart"]])


def isolate_nodes(server: Any, places: list[tuple[str, int]]) -> None:
    """Drop all traffic between a node and the nodes at these addresses, and confirm it to the parent."""

    def work() -> None:
        server.isolate(places)
        print_answer({"apart": places})

    server.call_soon(work)


def await_brokers(server: Any, others: set[int]) -> None:
    """Report to the parent once the metadata has all these brokers as alive."""
    node, listener = server.node, next(iter(server.addresses))

    def check_parent() -> None:
        if others <= set(node.brokers.list_alive(listener)):
            print_answer({"met": sorted(others)})
        else:
            node.timers.schedule(node.clock.monotonic() + LOOK_SECONDS, check_parent)

    server.call_soon(check_parent)
