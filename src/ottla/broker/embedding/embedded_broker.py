"""`ottla.Broker`: a broker inside a program.

    with Broker() as broker:
        producer = Producer(bootstrap_servers=broker.bootstrap_servers)

It runs in a thread of this process, or with `process=True` in a process of its own, with its own interpreter lock.
Either way it ends with the program.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ottla.broker.settings.config import BrokerConfig, read_config
from ottla.clock import Clock
from ottla.config import unknown
from ottla.errors import ConfigError, IllegalStateError, OttlaError
from ottla.trace import CAPACITY, EventStream, Trace
from ottla.uncollected import uncollected

if TYPE_CHECKING:
    from ottla.broker.embedding.broker_process import BrokerProcess
    from ottla.broker.server import Server

log = logging.getLogger(__name__)
CLOSE_SECONDS = 30.0
MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
"""The SASL mechanisms of `users`."""
QUICK = {
    "group_initial_rebalance_delay_ms": 0,  # no other members are expected
    "group_consumer_heartbeat_interval_ms": 500,
    "group_consumer_min_heartbeat_interval_ms": 1,
    "group_consumer_min_session_timeout_ms": 1,
}
"""Defaults that differ from Kafka's for a broker inside a program, where starts and ends should be quick."""


class Broker:
    """A Kafka-compatible broker.

    `data_dir` is the directory of the topics; without it they are in a temporary directory that is deleted by `close`.
    `listen` is `host:port`, port 0 for a free one, or several with commas between: `A://127.0.0.1:0,B://[::1]:0`. Other
    settings are Kafka's, as keywords: `num_partitions=3`.

    For a listener with TLS and no certificate, one is created, with an authority for this broker alone. `users` are the
    names and passwords of clients. `client_settings` returns the settings of a client:

        with Broker(listen="SASL_SSL://127.0.0.1:0", users={"alice": "s3cret"}) as broker:
            producer = Producer(broker.client_settings())

    Safe as a fixture: `with Broker() as broker: yield broker`.
    """

    clock: Clock | None = None
    """The clock of a broker in this process; None for the system's clock."""

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        *,
        listen: str = "127.0.0.1:0",
        process: bool = False,
        users: Any = None,
        **settings: Any,
    ) -> None:
        if data_dir is not None:
            settings["log_dirs"] = check_directory_name(data_dir)
        if not {"listeners"} & settings.keys():
            settings["listeners"] = listen
        for name, value in QUICK.items():
            settings.setdefault(name, value)
        self._users: dict[str, str] = dict(users or {})
        if self._users:
            settings["add_scram"] = scram_lines(self._users)
            settings.setdefault("sasl_enabled_mechanisms", MECHANISMS)
        self.config: BrokerConfig = read_config(settings)
        self.certificate_authority: str | None = None
        """The certificate, as PEM, of the authority that was created for this broker; None if there is none."""
        if self._needs_certificate():
            self.config = read_config(settings | self._make_certificate())
        self._in_process = process
        self._running: InThread | BrokerProcess | None = None
        self._owner = os.getpid()

    def __repr__(self) -> str:
        where = ", ".join(self._running.addresses.values()) if self._running else "not running"
        return f"Broker({where})"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, `host:port`; with several listeners that of the first."""
        return next(iter(self.addresses.values()))

    @property
    def addresses(self) -> dict[str, str]:
        """The address of each listener, by its name."""
        if self._running is None:
            raise IllegalStateError("the broker is not running: use it in a with statement, or call start()")
        return self._running.addresses

    def client_settings(
        self, user: str | None = None, *, listener: str | None = None, mechanism: str = "SCRAM-SHA-256"
    ) -> dict[str, str]:
        """Return the settings for connecting to a listener as a user; the defaults are the first ones.

        The names are those of librdkafka, which Ottla's clients accept as well.
        """
        name = listener or next(iter(self.addresses))
        if name not in self.addresses:
            raise ConfigError(unknown("listener", name, self.addresses))
        protocol = self.config.protocols()[name]
        settings = {"bootstrap.servers": self.addresses[name], "security.protocol": protocol}
        if protocol.endswith("SSL") and self.certificate_authority is not None:
            settings["ssl.ca.pem"] = self.certificate_authority
        if protocol.startswith("SASL"):
            who = user or next(iter(self._users), "")
            if who not in self._users:
                raise ConfigError(f"{unknown('user', who, self._users)}: name users with Broker(users={{…}})")
            settings |= {"sasl.mechanism": mechanism, "sasl.username": who, "sasl.password": self._users[who]}
        return settings

    def _needs_certificate(self) -> bool:
        return any(
            protocol.endswith("SSL")
            and self.config.listener(name).ssl_keystore_location is None
            and self.config.listener(name).ssl_keystore_key is None
            for name, protocol in self.config.protocols().items()
        )

    def _make_certificate(self) -> dict[str, str]:
        from ottla.certificates import Authority

        authority = Authority.made()
        hosts = {each.host for each in self.config.endpoints()} - {"", "0.0.0.0", "::"}
        made = authority.server(["localhost", "127.0.0.1", "::1", *sorted(hosts)])
        self.certificate_authority = authority.own.certificate
        return {"ssl_keystore_certificate_chain": made.certificate, "ssl_keystore_key": made.key}

    @property
    def pid(self) -> int:
        """The process id of the broker: of this process, or with `process=True` of its own."""
        return self._running.pid if self._running is not None else os.getpid()

    def trace(self, capacity: int = CAPACITY) -> Trace:
        """Return a trace of the events of consumer groups from now on, with the types of `ottla.coordination.groups.classic.notes`.

        Raise IllegalStateError for a broker in a process of its own, whose log has the same events.
        """
        if not isinstance(self._running, InThread):
            raise IllegalStateError("trace() needs a running broker in this process: Broker(), without process=True")
        return self._running.groups.trace(capacity)

    @property
    def server(self) -> Server | None:
        """The running node, if it is in this process."""
        return self._running._server if isinstance(self._running, InThread) else None

    def start(self) -> Self:
        """Start the broker; it serves clients when this returns.

        Raise OttlaError if it cannot start, for example if its port is in use.
        """
        if self._running is not None:
            raise IllegalStateError(f"the broker is already running on {self.bootstrap_servers}")
        if self._in_process:
            from ottla.broker.embedding.broker_process import BrokerProcess

            self._running = BrokerProcess(self.config)
        else:
            with uncollected():
                self._running = InThread(self.config, self.clock)
        self._owner = os.getpid()
        atexit.register(self.close)
        return self

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Shut the broker down within `timeout` seconds. May be called twice; the broker can be started again."""
        running, self._running = self._running, None
        # A forked child has a copy of this object, but the broker is its parent's.
        if running is not None and self._owner == os.getpid():
            running.close(timeout)
            atexit.unregister(self.close)


def scram_lines(users: Mapping[str, str]) -> str:
    """Return users as lines for `add.scram`."""
    return "\n".join(
        f"{mechanism}=[name={quote(name)},password={quote(password)}]"
        for name, password in users.items()
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    )


def quote(text: str) -> str:
    """Return a quoted value. It may contain any character but the end of a line."""
    if not text or "\n" in text or "\r" in text:
        raise ConfigError("users: a name or password is empty, or has more than one line")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def check_directory_name(data_dir: str | os.PathLike[str]) -> str:
    """Return the absolute path. An empty name is rejected: it is probably a variable that is not set."""
    if not os.fspath(data_dir):
        raise ConfigError("data_dir is empty: name a directory, or leave it out for a temporary one")
    if "," in os.fspath(data_dir):
        raise ConfigError(f"data_dir = {os.fspath(data_dir)!r}: has a comma; name several directories with log_dirs=")
    return str(Path(data_dir).absolute())


class InThread:
    """A broker in a thread of this process."""

    def __init__(self, config: BrokerConfig, clock: Clock | None = None) -> None:
        from ottla.broker.serve import page_at, serve_metrics
        from ottla.broker.server import Server
        from ottla.compiled import warn_if_uncompiled

        self._page, config = page_at(config)
        try:
            self._server = Server(config, clock)
            if config.is_alone:
                self._server.start_serving()
        except BaseException:
            self._close_page()
            raise
        self.groups = EventStream()
        self._server.node.group_listeners.append(self.groups.publish)
        self._window = serve_metrics(self._page, self._server, config)
        RUNNING.add(self)
        warn_if_uncompiled()
        self.bootstrap_servers = self._server.bootstrap_servers
        self.addresses = self._server.addresses
        self.pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name=f"ottla-{self.bootstrap_servers}", daemon=True)
        if self._page is not None:
            self._page.is_ready = True
        self._thread.start()

    def _run(self) -> None:
        try:
            self._server.run()
        except OttlaError:
            pass  # logged by the broker; clients cannot connect

    def disown(self) -> None:
        """Release the parent's resources in a forked child, in which this thread does not exist."""
        self._server.disown()

    def close(self, timeout: float) -> None:
        """Stop the loop and wait for it."""
        RUNNING.discard(self)
        self._close_page()
        if self._window is not None:
            self._window.close()
        self._server.stop()
        self._thread.join(timeout)
        if self._thread.is_alive():
            log.warning("the broker on %s is still closing its logs after %g s", self.bootstrap_servers, timeout)

    def _close_page(self) -> None:
        if self._page is not None:
            self._page.close()


RUNNING: set[InThread] = set()


def disown_all() -> None:
    """Close the ports and directories of the parent's brokers in a forked child.

    Otherwise it would hold them after the parent has closed them.
    """
    for running in RUNNING:
        running.disown()
    RUNNING.clear()


os.register_at_fork(after_in_child=disown_all)
