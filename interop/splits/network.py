"""Hosts on a switch, each in a network namespace. Frames from one host to another are dropped between `cut` and
`heal`.

No connection is refused: the frames are sent to an unused hardware address, in one direction at a time, as with an
unplugged cable. Connections stay open and wait. Create it in a process that `apart` has isolated, since it owns the
whole network there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence

CLIENTS = 254
"""The id of the host in which this process runs."""
NOBODY = "02:00:00:00:00:00"
NAMES = "/run/netns"
APART = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


def missing() -> str:
    """Return the reason why networks cannot be partitioned here, or "" if they can."""
    if os.geteuid() != 0:
        return "network namespaces are for root: run the tests as root, in a container for instance, to have clusters split"
    lacking = [each for each in ("ip", "unshare", "mount") if shutil.which(each) is None]
    if lacking:
        return f"there is no {lacking[0]} here: install iproute2 and util-linux to have clusters split"
    tried = subprocess.run([*APART, "true"], capture_output=True, text=True, check=False)
    return (
        tried.stderr and f"this system gives nobody a network namespace ({tried.stderr.strip()}): no cluster is split"
    )


def apart(module: str, arguments: Sequence[str]) -> list[str]:
    """Return the command that runs a module with network, mount and PID namespaces of its own."""
    return [*APART, sys.executable, "-m", module, *arguments]


def address(host: int) -> str:
    return f"10.213.0.{host}"


class Network:
    """Hosts that reach each other and this process."""

    def __init__(self, hosts: Iterable[int]) -> None:
        self.hosts = (*hosts, CLIENTS)
        self.cuts: set[tuple[int, int]] = set()
        """Pairs of hosts: frames from the first host do not reach the second."""
        os.makedirs(NAMES, exist_ok=True)
        run("mount", "-t", "tmpfs", "none", NAMES)
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "port", "type", "bridge")
        self._settle(CLIENTS)
        for host in self.hosts[:-1]:
            self._plug_in(host)
        for one in self.hosts:
            for other in self.hosts:
                self._send(one, other, hardware(other))

    def command(self, host: int, words: Sequence[str]) -> list[str]:
        """Return the command that runs `words` on a host."""
        return list(words) if host == CLIENTS else ["ip", "netns", "exec", name(host), *words]

    def cut(self, one: int, other: int) -> None:
        """Drop all frames from `one` to `other`."""
        self._send(one, other, NOBODY)
        self.cuts.add((one, other))

    def heal(self) -> None:
        for one, other in self.cuts:
            self._send(one, other, hardware(other))
        self.cuts.clear()

    def _plug_in(self, host: int) -> None:
        run("ip", "netns", "add", name(host))
        run("ip", "link", "add", f"socket{host}", "type", "veth", "peer", "name", "port", "netns", name(host))
        run("ip", "link", "set", f"socket{host}", "master", "port", "up")
        run(*self.command(host, ["ip", "link", "set", "lo", "up"]))
        self._settle(host)

    def _settle(self, host: int) -> None:
        run(*self.command(host, ["ip", "link", "set", "port", "address", hardware(host), "up"]))
        run(*self.command(host, ["ip", "address", "add", f"{address(host)}/24", "dev", "port"]))

    def _send(self, one: int, other: int, to: str) -> None:
        if one != other:
            where = ("lladdr", to, "dev", "port", "nud", "permanent")
            run(*self.command(one, ["ip", "neighbour", "replace", address(other), *where]))


def name(host: int) -> str:
    return f"host{host}"


def hardware(host: int) -> str:
    return f"02:00:00:00:00:{host:02x}"


def run(*words: str) -> None:
    subprocess.run(words, check=True)
