"""Looking at logs from outside: nothing is locked, opened for writing, or mended; a broker may be at work on them.

check_directory ──► check_partition ──► check_segment ──► walk (batches), index_check
dump ──► walk, state_files
"""

from __future__ import annotations

from ottla.storage.inspection.directory_check import Inspection, find, find_twins
from ottla.storage.inspection.dump import dump
from ottla.storage.inspection.fault import FileFault, FileNote

__all__ = ["FileFault", "FileNote", "Inspection", "dump", "find", "find_twins"]
