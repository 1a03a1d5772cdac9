"""A console beside a broker: the process that `ottla broker --console` begins, and ends."""

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
FAREWELL_SECONDS = 5.0


class ConsoleBeside:
    """Has its port and its process from the moment it is made; answers from `show` on, until `close`."""

    def __init__(self, place: str, config: BrokerConfig) -> None:
        """ConfigError where the address cannot be had or nothing can ask the broker, MissingExtraError without the extra."""
        self._listener_name = plaintext_listener(config)
        self._trace = config.trace_folder or None
        with extra("console"):
            for package in NEEDED:
                if find_spec(package) is None:
                    raise ModuleNotFoundError(name=package)
        host, port = place_of(OPTION, place)
        with listener_at(host, port, OPTION) as listener:
            descriptor = listener.fileno()
            command = [sys.executable, "-m", "ottla.console.beside_broker", host, str(descriptor)]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                text=True,
                pass_fds=[descriptor],
                start_new_session=True,  # Ctrl-C is the broker's to heed
            )

    def show(self, addresses: Mapping[str, str]) -> None:
        """The broker is ready at these, by the names of its listeners."""
        told = {"settings": {"bootstrap.servers": addresses[self._listener_name]}, "trace": self._trace}
        assert self._process.stdin is not None
        try:
            print(json.dumps(told), file=self._process.stdin, flush=True)
        except BrokenPipeError:  # it has ended, and said why
            pass

    def close(self) -> None:
        """End it, and wait until it has."""
        try:
            self._process.communicate(timeout=FAREWELL_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def plaintext_listener(config: BrokerConfig) -> str:
    """The name of one by which the console can ask without a login."""
    if config.controls:
        raise ConfigError(f"{OPTION}: a controller has nothing that a console shows; give it to a broker")
    for name, protocol in config.protocols().items():
        if protocol == "PLAINTEXT":
            return name
    raise ConfigError(
        f"{OPTION} asks the broker by a listener that is PLAINTEXT, and there is none; "
        "start `ottla console --command-config FILE` beside it, with how to log in"
    )
