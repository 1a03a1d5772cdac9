"""A process that runs the function of a worker, one call at a time.

The worker's process keeps the consumer: it polls, commits and sends heartbeats. A thread of it owns one `CallProcess`, sends
a record through a pipe, and waits for the result:

    NOT STARTED ──start──► STARTING ──ready──► IDLE ──record──► CALLING ──result──► IDLE
                                                │                  │ killed, crashed, or longer than its time limit
                                                └─────────────► ENDED ──start──► STARTING

A process ignores SIGINT and SIGTERM, which a terminal or a service manager sends to all processes: the worker's process decides
when it ends. It ends at once if the worker's process has ended, in the middle of a call, too; the record is repeated by another
worker.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

from ottla.errors import ConfigError, WorkerProcessError

log = logging.getLogger(__name__)

START_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
"""Not `fork`: the worker's process has threads and connections."""
END_SECONDS = 5.0
"""The time that an idle process has to end before it is killed."""
START_TRIES = 3
READY = b"ready"
REMEDY = (
    "it imports the main module and the module of the function, so start the worker under `if __name__ == '__main__':`"
)


class NotReadyError(WorkerProcessError):
    """A process ended before it could run the function, and so would each of its successors."""


class RemoteTraceback(Exception):
    """The traceback of an exception in another process, as its cause."""


class CallProcess:
    """Belongs to one thread. Others may call `kill` and `end`, and `close` after that thread has ended."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = pickle_function(function)
        self._lock = threading.Lock()
        """Protects the process against a `kill` while it is replaced."""
        self._process: Any = None
        self._connection: Connection | None = None
        self._is_ready = False
        self._is_ended = False
        """True if no process is started any more."""

    @property
    def pid(self) -> int | None:
        """The id of the process; None if there is none."""
        process = self._process
        return None if process is None else process.pid

    def start(self) -> None:
        """Start the process without waiting for it. Does nothing if it is running."""
        with self._lock:
            if self._process is not None and self._process.is_alive():
                return
            if self._is_ended:
                raise NotReadyError("a process for calls is not started, because the worker ends")
            self._clear()
            context = multiprocessing.get_context(START_METHOD)
            ours, theirs = context.Pipe()
            process = context.Process(  # type: ignore[attr-defined]
                target=serve_calls, args=(theirs, self._function), name="ottla-work"
            )
            try:
                process.start()
            except (EOFError, OSError) as error:  # since Python 3.14 of the fork server, if the main module fails there
                ours.close()
                raise NotReadyError(f"a process for calls did not start ({error}): {REMEDY}") from None
            finally:
                theirs.close()
            self._connection, self._process = ours, process
            self._is_ready = False

    def wait_until_ready(self) -> None:
        """Wait until the process can run the function. A process that is killed meanwhile is replaced a few times.

        Raises NotReadyError if it ends before: the function cannot be imported there.
        """
        for _ in range(START_TRIES):
            self.start()
            if self._is_ready:
                return
            assert self._connection is not None
            try:
                self._connection.recv_bytes()
                self._is_ready = True
                return
            except (EOFError, OSError):
                end = self._describe_end()
            if self._process.exitcode >= 0:
                break
        raise NotReadyError(f"a process for calls ended before it was ready ({end}): {REMEDY}")

    def call(self, record: Any, time_limit: float | None) -> None:
        """Run the function with a record. Raises its exception.

        Raises TimeoutError after `time_limit` seconds, and WorkerProcessError if the process ends; both end the process.
        """
        self.wait_until_ready()
        assert self._connection is not None
        try:
            send_object(self._connection, record)
            if not self._connection.poll(time_limit):
                self.kill()
                self._describe_end()
                raise TimeoutError(f"the call took longer than time_limit = {time_limit:g} s; its process was ended")
            error = self._connection.recv()
        except (EOFError, OSError) as failure:
            if isinstance(failure, TimeoutError):
                raise
            raise WorkerProcessError(f"the process of the call ended ({self._describe_end()})") from None
        if error is not None:
            raise error

    def kill(self) -> None:
        """End the process at once."""
        with self._lock:
            if self._process is not None and self._process.is_alive():
                self._process.kill()

    def end(self) -> None:
        """Start no process any more, and end one that is starting."""
        with self._lock:
            self._is_ended = True
        if not self._is_ready:
            self.kill()

    def close(self) -> None:
        """End the process, which is idle."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            if self._process is not None:
                self._process.join(END_SECONDS)
                if self._process.is_alive():
                    self._process.kill()
            self._clear()

    def _describe_end(self) -> str:
        """Wait for the end of the process, and return its pid and exit code."""
        process = self._process
        process.join(END_SECONDS)
        self._is_ready = False
        code = process.exitcode
        text = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return f"pid {process.pid}, {text}"

    def _clear(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.join()
            self._process.close()
        self._connection = self._process = None


def pickle_function(function: Callable[[Any], Any]) -> bytes:
    """Return the function as bytes for another process. Raises ConfigError if that is impossible."""
    try:
        return pickle.dumps(function)
    except Exception as error:
        raise ConfigError(
            f"processes: the function {function!r} cannot be sent to another process ({error}): define it at the top level of "
            "a module"
        ) from error


def send_object(connection: Connection, value: Any) -> None:
    """Send an object as `Connection.send` does, which `recv` returns on the other side.

    If `Connection.send` fails, its exception refers to an exported buffer. If both are garbage of one cycle, Python 3.13 prints a
    BufferError.
    """
    connection.send_bytes(pickle.dumps(value))


def serve_calls(connection: Connection, pickled: bytes) -> None:
    """Run calls until the connection is closed. This is the main function of the process."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()
    function = pickle.loads(pickled)
    connection.send_bytes(READY)
    while True:
        try:
            record = connection.recv()
        except (EOFError, OSError):
            return
        error: BaseException | None = None
        try:
            function(record)
        except Exception as raised:
            error = as_portable(raised)
        try:
            send_object(connection, error)
        except OSError:
            return


def end_with_parent() -> None:
    """Wait for the end of the worker's process, and end this one."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def as_portable(error: Exception) -> Exception:
    """Return an exception that can be sent to another process, with the traceback as the cause."""
    text = "".join(traceback.format_exception(error))
    try:
        found: Exception = pickle.loads(pickle.dumps(error))
    except Exception:
        found = WorkerProcessError(f"{type(error).__name__}: {error}")
    return PortableError(found, text)


class PortableError(Exception):
    """An exception and its traceback; unpickling returns the exception."""

    def __init__(self, error: Exception, text: str) -> None:
        super().__init__(error, text)

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_error, self.args


def restore_error(error: Exception, text: str) -> Exception:
    """Return the exception with its original traceback as the cause."""
    error.__cause__ = RemoteTraceback("\n" + text)
    return error
