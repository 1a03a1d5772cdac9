"""What Spark starts as a worker, or as the daemon of some: has the fork server become it, and lives as long.

`python -I -S fork_client.py SOCKET ARGUMENTS…` where Spark would have started `python ARGUMENTS…`. Loads next to nothing, and where no
server answers it becomes that very Python.
"""

from __future__ import annotations

import marshal
import os
import socket
import sys

LENGTH = 8


def asked(channel: socket.socket, place: str, arguments: list[str]) -> bool:
    """Whether the server has started it."""
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
        # As with `-m`: the name of the module is none of the arguments.
        if asked(channel, place, arguments[1:]):
            for number in (0, 1, 2):  # they are the other's now: Spark is to see them close when it closes them
                os.close(number)
            ending = channel.recv(1)
            os._exit(ending[0] if ending else 1)
    os.execv(sys.executable, [sys.executable, *arguments])


if __name__ == "__main__":
    main()
