"""A broker and a controller of one cluster in one process (`process.roles=broker,controller`), each with its loop in a thread of its own.

    main thread      Server            log.dirs/<topic>-<partition>/, and a copy of the metadata for as long as it runs
    ottla-controller ControllerServer  log.dirs/__cluster_metadata-0/

The broker half goes to the quorum as any broker does: its controller half may lead it, or may not. It hands over and ends before the
other does, whose vote it may need for that; the directory is closed when both have ended. A broker half that was unregistered ends alone:
it refuses connections, and the controller half votes until the process is stopped.
"""

from __future__ import annotations

import logging
import threading
from queue import SimpleQueue

from ottla.broker.controller_server import ControllerServer
from ottla.broker.controllers.lifecycle_thread import RegistrationLostError
from ottla.broker.server import Server
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.roles import controller_half
from ottla.clock import Clock
from ottla.errors import OttlaError

log = logging.getLogger(__name__)


class CombinedServer(Server):
    """Two ports, two loops, one directory."""

    def __init__(self, config: BrokerConfig, clock: Clock | None = None) -> None:
        """As of a broker; OttlaError where one of the two cannot be."""
        super().__init__(config, clock)
        try:
            self.controller = ControllerServer(controller_half(config), clock, self._directory.main)
        except BaseException:
            self._give_back()
            raise
        self._is_registration_lost = False
        self._ended: SimpleQueue[OttlaError | None] = SimpleQueue()  # its `put` is safe in a signal handler
        """Why the controller half has to end, once the broker half has: None for `stop`."""
        self._thread = threading.Thread(target=self._control, name="ottla-controller", daemon=True)

    def run(self) -> None:
        """Vote, and serve, until `stop`; OttlaError where one of the two had to end by itself."""
        self._thread.start()
        super().run()

    def stop(self) -> None:
        """End both halves; from any thread, or from a signal handler."""
        self._ended.put(None)
        if not self._is_registration_lost:
            super().stop()

    def _fail(self, error: OttlaError) -> None:
        if isinstance(error, RegistrationLostError):
            log.critical("%s; its controller goes on voting", error)
            self._is_registration_lost = True
            self._end()
        else:
            super()._fail(error)

    def _give_back(self) -> None:
        """The ports and the directory, where one half can start and the other cannot."""
        self._selector.close_all()
        self._directory.close(clean=self._directory.clean)
        self._end_request_log()

    def _control(self) -> None:
        try:
            self.controller.run()
        except OttlaError as error:
            failure = error
        except Exception as error:
            failure = OttlaError(f"the controller of this node failed: {error!r}; the node stops")
            failure.__cause__ = error
        else:
            return
        self.call_soon(lambda: self._fail(failure))
        self._ended.put(failure)

    def _close_directory(self) -> None:
        if self._is_registration_lost and self._failure is None:
            self._failure = self._ended.get()
        self.controller.stop()
        self._thread.join()
        super()._close_directory()
