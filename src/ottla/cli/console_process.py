"""The console process that `ottla broker --console` starts and stops."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ottla.cli.options import place_of
from ottla.console.listening import listener_at
from ottla.errors import ConfigError
from ottla.extras import extra

if TYPE_CHECKING:
    from ottla.broker.settings.config import BrokerConfig

OPTION = "--console"
NEEDED = ("starlette", "uvicorn")
SHUTDOWN_SECONDS = 5.0


class ConsoleProcess:
    """A child process that holds its port from construction and serves requests from `show` until `close`."""

    def __init__(self, place: str, config: BrokerConfig) -> None:
        """Start the process.

        Raise ConfigError for an unusable address or without a PLAINTEXT listener, MissingExtraError without the extra.
        """
        self._listener_name = plaintext_listener(config)
        self._trace = config.trace_folder or None
        with extra("console"):
            for package in NEEDED:
                if find_spec(package) is None:
                    raise ModuleNotFoundError(name=package)
        host, port = place_of(OPTION, place)
        with listener_at(host, port, OPTION) as listener:
            descriptor = listener.fileno()
            command = [sys.executable, "-m", "ottla.console.child_process", host, str(descriptor)]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                text=True,
                pass_fds=[descriptor],
                start_new_session=True,  # Ctrl-C is handled by the broker
            )

    def show(self, addresses: Mapping[str, str]) -> None:
        """Pass the addresses of the started broker, by listener name."""
        message = {"settings": {"bootstrap.servers": addresses[self._listener_name]}, "trace": self._trace}
        assert self._process.stdin is not None
        try:
            print(json.dumps(message), file=self._process.stdin, flush=True)
        except BrokenPipeError:  # the console has stopped and logged the reason
            pass

    def close(self) -> None:
        """Stop the process and wait for its end."""
        try:
            self._process.communicate(timeout=SHUTDOWN_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def plaintext_listener(config: BrokerConfig) -> str:
    """Return the name of a PLAINTEXT listener, by which the console can connect without authentication.

    Raise ConfigError if there is none.
    """
    if config.is_controller:
        raise ConfigError(f"{OPTION}: a controller has no data for a console: use the option with a broker")
    for name, protocol in config.protocols().items():
        if protocol == "PLAINTEXT":
            return name
    raise ConfigError(
        f"{OPTION} needs a PLAINTEXT listener, and the broker has none; "
        "start `ottla console --command-config FILE` separately, with a login"
    )
