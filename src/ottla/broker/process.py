"""A broker in a process of its own, on behalf of the process that started it.

The two are tied by a pipe: when the parent closes it, or ends in whatever way, the broker shuts down. The first line
in the pipe is the broker's job; the first line back says that it is ready, or why not. Each further line is an order, and
is answered when it is done: to have heard of other brokers of the cluster, or to keep apart from some.
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
from ottla.broker.process import work
work(job)
"""
"""Ctrl-C reaches all processes of a terminal: what becomes of this one, its parent decides, from its first moment on."""
FAILED = 1
"""The exit status of a broker that could not start, or had to stop by itself."""
KILL_AFTER_SECONDS = 5.0
PARENT_CHECK_SECONDS = 1.0
LOOK_SECONDS = 0.01
"""How often a broker looks for those whom it has not heard of yet."""
HAND_OVER_SECONDS = 2.0
"""How long one of a cluster may take for that when its parent lets go of it."""
LOGGERS = ("ottla", "ottla.request")

log = logging.getLogger(__name__)


class BrokerProcess:
    def __init__(self, config: BrokerConfig, *, wait: bool = True) -> None:
        """Start the process and wait until it is ready; OttlaError says why it is not. Without `wait` that is asked of `wait_until_ready`."""
        levels = {name: logging.getLogger(name).getEffectiveLevel() for name in LOGGERS}
        job: dict[str, Any] = {"config": config.explicit(), "path": sys.path, "parent": os.getpid(), "levels": levels}
        with uninterrupted():
            self._process = subprocess.Popen(
                [sys.executable, "-c", BOOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
        self.addresses: dict[str, str] = {}
        self._tell(job)
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """OttlaError says why it is not going to be."""
        try:
            self.addresses = self._heard()
        except BaseException:
            self.ask_to_end()
            self.close(KILL_AFTER_SECONDS)
            raise

    def has_met(self, others: Iterable[int], timeout: float) -> bool:
        """Whether, by then, it has heard of these brokers of its cluster that they are alive."""
        self._tell({"meet": list(others)})
        return "met" in self._answer(timeout)

    def keep_apart(self, places: Iterable[tuple[str, int]], timeout: float) -> bool:
        """Whether, by then, it says nothing any more to who listens there, and to everybody else again."""
        self._tell({"apart": list(places)})
        return "apart" in self._answer(timeout)

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

    def ask_to_end(self) -> None:
        """Have it hand over, where there is anybody, and shut down; who asks does not wait."""
        self._process.terminate()

    def has_ended(self, timeout: float) -> bool:
        """Whether it is over by then."""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def let_go(self) -> None:
        """Have it shut down, at once where it was asked to end before; who lets go does not wait. May be called again."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def close(self, timeout: float) -> None:
        """Let it go, and wait; after `timeout` seconds it is killed, which loses nothing that it acknowledged."""
        process = self._process
        self.let_go()
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            log.warning("the broker's process %d did not end within %g s and is killed", process.pid, timeout)
            process.kill()
            process.wait(KILL_AFTER_SECONDS)

    def _tell(self, job: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(job, default=lambda secret: secret.value).encode() + b"\n")
        except BrokenPipeError:
            pass  # it has died already, and says so by its silence

    def _answer(self, timeout: float) -> dict[str, Any]:
        """What the process says by then, if anything."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:  # select() takes no descriptor above 1023
            selector.register(self._process.stdout, selectors.EVENT_READ)
            readable = selector.select(timeout)
        return dict(json.loads(self._process.stdout.readline() or "{}")) if readable else {}

    def _heard(self) -> dict[str, str]:
        assert self._process.stdout is not None
        answer = json.loads(self._process.stdout.readline() or "{}")
        if "ready" in answer:
            return dict(answer["ready"])
        if "error" in answer:
            raise (ConfigError if answer["config"] else OttlaError)(answer["error"])
        status = self._process.wait(KILL_AFTER_SECONDS)
        raise OttlaError(f"the broker's process ended with status {status} before it was ready")


@contextmanager
def uninterrupted() -> Iterator[None]:
    """What is started meanwhile begins with SIGINT and SIGTERM blocked, and this thread hears of them afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def work(job: dict[str, Any]) -> None:
    """The child's side: serve until the parent closes the pipe."""
    from ottla.broker.serve import Serves, serve

    handler = logging.StreamHandler()
    handler.setFormatter(EscapingFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
    for name, level in job["levels"].items():
        logging.getLogger(name).setLevel(level)

    def begun(server: Serves) -> None:
        threading.Thread(target=watch_parent, args=(server, job["parent"]), daemon=True).start()

    def ready(server: Serves) -> None:
        say({"ready": server.addresses})

    try:
        serve(read_config(job["config"]), ready, (signal.SIGTERM,), begun)
    except OttlaError as error:
        say({"error": str(error), "config": isinstance(error, ConfigError)})
        sys.exit(FAILED)


def say(answer: dict[str, Any]) -> None:
    """Tell the parent; it may have gone already."""
    try:
        os.write(1, json.dumps(answer).encode() + b"\n")
    except BrokenPipeError:
        pass


def watch_parent(server: Any, parent: int) -> None:
    """Do as the parent asks, and stop the broker when its end of the pipe is closed, or the parent is no more.

    The second is for a parent that has forked: its children hold the pipe open when it is gone.
    """
    while os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], PARENT_CHECK_SECONDS)
        lines = os.read(0, 4096).splitlines() if readable else []
        if readable and not lines:
            break
        for line in lines:
            do(server, json.loads(line))
    server.stop()
    time.sleep(HAND_OVER_SECONDS)
    server.stop()  # at once, whoever was to take over


def do(server: Any, order: dict[str, Any]) -> None:
    """What the parent wants; it is told when it is done."""
    if "meet" in order:
        meet(server, set(order["meet"]))
    else:
        keep_apart(server, [(host, port) for host, port in order["apart"]])


def keep_apart(server: Any, places: list[tuple[str, int]]) -> None:
    """Have a node exchange nothing with the nodes that listen at these places; report when that is so."""

    def work() -> None:
        server.keep_apart(places)
        say({"apart": places})

    server.call_soon(work)


def meet(server: Any, others: set[int]) -> None:
    """Tell the parent once the copy of the metadata has all these as alive; one that is alone has none."""
    node, listener = server.node, next(iter(server.addresses))

    def look() -> None:
        if node.brokers is None or others <= set(node.brokers.alive(listener)):
            say({"met": sorted(others)})
        else:
            node.timers.at(node.clock.monotonic() + LOOK_SECONDS, look)

    server.call_soon(look)
