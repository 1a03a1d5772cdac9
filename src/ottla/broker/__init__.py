"""The broker: one loop around the machines that decide and the logs that keep.

embedded, process ──► serve ──► Server ──► handlers/<api> ──► Node ──► coordinators ──► cluster ──► machines
                                  │                             └──► partitions ──► fetching
                               requests                                   └──► storage
"""

from ottla.errors import OttlaError

try:
    import fcntl as fcntl
    import resource as resource
except ModuleNotFoundError as error:  # Windows. Locks of directories and the limit of open files need them.
    import platform

    raise OttlaError(
        f"a broker needs Linux or macOS, and {platform.system()} has no {error.name}: "
        "run it in WSL or in a container; clients run here"
    ) from None
