"""Credentials for names that no user has, so that a login does not reveal which users exist.

SCRAM's server sends a salt and a number of iterations before the client proves anything (RFC 5802). An unknown name
receives them as well, and they must look like a user's: the same for that name each time, from each broker of the
cluster and after each restart, with a length and alphabet of the salt and iterations that users have, in the proportion
in which users have them.

Each user has a position on a ring, its stored key, which is as good as random. A name has the shape of the user at the
position after the hash of the name. Thus a new user or password changes the shape of few names, as if those had new
passwords.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import itemgetter

from ottla.broker.security.metadata_source import MetadataSource
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.records import UserScramCredentialRecord
from ottla.digests import hashed
from ottla.protocol.sasl.scram_credential import MECHANISMS, USUAL, SaltShape, ScramCredential, decoy, shape_of

Ring = Sequence[tuple[bytes, str, SaltShape]]
"""For each user its position, mechanism and shape, in the order of the positions."""


class DecoyCredentials:
    """Makes credentials from the users of a cluster and a secret that all of its brokers have."""

    def __init__(self, cluster: MetadataSource, own_id: bytes) -> None:
        """`own_id` is the `directory.id` of the only broker of a cluster."""
        self._cluster = cluster
        self._own_id = own_id
        self._state: tuple[ClusterMetadata, int] | None = None
        self._rings: dict[str, Ring] = {}
        self._any: Ring = ()

    def make_credential(self, mechanism: str, name: str) -> ScramCredential:
        """Return the credential for a name that no user of this mechanism has."""
        self._renew()
        _, shape = choose_shape(self._rings[mechanism], mechanism, name)
        return decoy(mechanism, self._secret(), name, shape)

    def make_any_credential(self, name: str) -> tuple[str, ScramCredential]:
        """Return a mechanism and a credential against which a password in full is checked, which takes as long as a user's."""
        self._renew()
        mechanism, shape = choose_shape(self._any, MECHANISMS[1], name)
        return mechanism, decoy(mechanism, self._secret(), name, shape)

    def _secret(self) -> bytes:
        # Directory ids are known only to clients that may describe the cluster, and these may list its users as well.
        registrations = self._cluster.machine.registrations
        first = registrations[min(registrations)].log_dirs[:1] if registrations else ()
        return b"".join(each.bytes for each in first) or self._own_id

    def _renew(self) -> None:
        machine = self._cluster.machine
        state = machine, machine.scram_version
        if state == self._state:
            return
        self._state = state
        records = machine.scram_credentials.values()
        self._rings = {
            name: make_ring([each for each in records if each.mechanism == n]) for n, name in MECHANISMS.items()
        }
        first = {each.name: each for each in sorted(records, key=lambda record: -record.mechanism)}
        self._any = make_ring(list(first.values()))


def make_ring(records: Sequence[UserScramCredentialRecord]) -> Ring:
    """Return the users' positions. `ScramCredentials.find_any` uses the first mechanism of a user as well."""
    return sorted(
        (each.stored_key, MECHANISMS[each.mechanism], shape_of(each.salt, each.iterations)) for each in records
    )


def choose_shape(places: Ring, mechanism: str, name: str) -> tuple[str, SaltShape]:
    """Return mechanism and shape of the user at the position after that of the name; the usual shape without users."""
    if not places:
        return mechanism, USUAL
    at = bisect_left(places, hashed("sha512", name.encode()), key=itemgetter(0))
    _, found, shape = places[at % len(places)]
    return found, shape
