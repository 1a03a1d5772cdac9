"""The lock of those who read a log in another thread than its own.

It keeps compaction from putting a segment in the place of others while a reader is between finding a segment and
opening its file. One for all logs, since both are rare and short.
"""

from __future__ import annotations

from threading import Lock

READER_LOCK = Lock()
