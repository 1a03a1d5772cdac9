"""The voter of the cluster's metadata, as a snapshot names it (KIP-853): this node alone, with the id of its directory.

Kafka reads its quorum from there if its settings have no voters. The record has no endpoint, because this broker has no
listener for controllers; a Kafka that opens the directory adds its own.
"""

from __future__ import annotations

import uuid
from struct import Struct
from typing import NamedTuple

KRAFT_VERSION_LEVEL = 1
"""The level of `kraft.version` from which on voters are records."""
KRAFT_VERSION = Struct(">hhB")
"""Version, level, no tags."""
VOTERS = Struct(">hBi16sBhhBBB")
"""Version, count + 1, then of a voter: id, directory, endpoints + 1, first and last kraft.version, tags of it; tags."""


class Quorum(NamedTuple):
    """The voters in a log or a snapshot of others, as raw records."""

    version: bytes | None = None
    voters: bytes | None = None

    def version_record(self) -> bytes | None:
        """Return the value of a control record that says by which rules there are voters."""
        return self.version

    def voters_record(self) -> bytes | None:
        """Return the value of the control record that lists the voters."""
        return self.voters


class SoleVoter(NamedTuple):
    """A node and the directory that makes it a voter."""

    node_id: int
    directory_id: uuid.UUID

    def version_record(self) -> bytes:
        """Return the value of a control record that says by which rules there are voters."""
        return KRAFT_VERSION.pack(0, KRAFT_VERSION_LEVEL, 0)

    def voters_record(self) -> bytes:
        """Return the value of a control record that says that this is the one voter."""
        return VOTERS.pack(0, 2, self.node_id, self.directory_id.bytes, 1, 0, KRAFT_VERSION_LEVEL, 0, 0, 0)
