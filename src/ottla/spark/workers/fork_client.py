"""The program that Spark starts as a Python worker or daemon.

It has the fork server create the actual process, and waits for its end.

`python -I -S fork_client.py SOCKET ARGUMENTS…` replaces Spark's `python ARGUMENTS…`. It imports almost nothing. If no
server answers, it executes that Python.
"""

from __future__ import annotations

import marshal
import os
import socket
import sys

LENGTH = 8


def request_process(channel: socket.socket, place: str, arguments: list[str]) -> bool:
    """Return True if the server has started the process."""
    try:
        channel.connect(place)
        request = marshal.dumps((arguments, dict(os.environ), os.getcwd()))
        head = len(request).to_bytes(LENGTH, "big")
        socket.send_fds(channel, [head], [0, 1, 2])
        channel.sendall(request)
        return channel.recv(1) == b"+"
    except OSError:
        return False


def main() -> None:
    place, *arguments = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as channel:
        # As with `-m`, the name of the module is not one of the arguments.
        if request_process(channel, place, arguments[1:]):
            for number in (
                0,
                1,
                2,
            ):  # only the created process keeps them open, so that Spark detects when it closes them
                os.close(number)
            ending = channel.recv(1)
            os._exit(ending[0] if ending else 1)
    os.execv(sys.executable, [sys.executable, *arguments])


if __name__ == "__main__":
    main()
