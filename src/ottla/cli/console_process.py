"""The processes that `ottla broker --console` and `--registry` start and stop."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from ottla.cannot_listen import open_http_listener
from ottla.cli.options import place_of
from ottla.errors import ConfigError
from ottla.extras import extra

if TYPE_CHECKING:
    from ottla.broker.settings.config import BrokerConfig

SHUTDOWN_SECONDS = 5.0


class ChildKind(NamedTuple):
    """A server that runs in a child process of a broker."""

    option: str
    module: str
    extra: str
    packages: tuple[str, ...]
    noun: str


CONSOLE = ChildKind("--console", "ottla.console.child_process", "console", ("starlette", "uvicorn"), "console")
REGISTRY = ChildKind("--registry", "ottla.registry.child_process", "registry", ("uvicorn",), "registry")


class ChildServer:
    """A child process that holds its port from construction and serves requests from `show` until `close`."""

    def __init__(self, kind: ChildKind, place: str, config: BrokerConfig) -> None:
        """Start the process.

        Raise ConfigError for an unusable address or without a PLAINTEXT listener, MissingExtraError without the extra.
        """
        self._listener_name = plaintext_listener(kind, config)
        self._trace = config.trace_folder or None
        with extra(kind.extra):
            for package in kind.packages:
                if find_spec(package) is None:
                    raise ModuleNotFoundError(name=package)
        host, port = place_of(kind.option, place)
        with open_http_listener(host, port, kind.option) as listener:
            descriptor = listener.fileno()
            self.url = f"http://{host_in_url(host)}:{listener.getsockname()[1]}"
            command = [sys.executable, "-m", kind.module, host, str(descriptor)]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                text=True,
                pass_fds=[descriptor],
                start_new_session=True,  # Ctrl-C is handled by the broker
            )

    def show(self, addresses: Mapping[str, str], registry_url: str | None) -> None:
        """Pass the addresses of the started broker, by listener name, and that of its schema registry."""
        message = {
            "settings": {"bootstrap.servers": addresses[self._listener_name]},
            "trace": self._trace,
            "registry": registry_url,
        }
        assert self._process.stdin is not None
        try:
            print(json.dumps(message), file=self._process.stdin, flush=True)
        except BrokenPipeError:  # the child has stopped and logged the reason
            pass

    def close(self) -> None:
        """Stop the process and wait for its end."""
        try:
            self._process.communicate(timeout=SHUTDOWN_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def host_in_url(host: str) -> str:
    """Return the host under which this machine reaches a server that listens on `host`."""
    if host in ("", "0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def plaintext_listener(kind: ChildKind, config: BrokerConfig) -> str:
    """Return the name of a PLAINTEXT listener, by which the child can connect without authentication.

    Raise ConfigError if there is none.
    """
    if config.is_controller:
        raise ConfigError(f"{kind.option}: a controller has no data for a {kind.noun}: use the option with a broker")
    for name, protocol in config.protocols().items():
        if protocol == "PLAINTEXT":
            return name
    raise ConfigError(
        f"{kind.option} needs a PLAINTEXT listener, and the broker has none; "
        f"start `ottla {kind.noun} --command-config FILE` separately, with a login"
    )
