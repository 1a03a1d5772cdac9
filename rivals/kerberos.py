"""A realm of Kerberos, with a KDC on a free port, from the system's own packages in a folder that is deleted afterwards.

Nothing of the machine's own Kerberos is read or changed: `KRB5_CONFIG` and the like are set while it runs, for this process
and those that it starts.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from unittest.mock import patch

from ottla.free_ports import free_port

REALM = "OTTLA.TEST"
READY_SECONDS = 30.0
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
FOLDERS = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
CLIENTS = """\
[libdefaults]
  default_realm = {realm}
  dns_lookup_realm = false
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
  kdc_timeout = 3000
  max_retries = 1
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
"""
SERVER = """\
[kdcdefaults]
  kdc_listen = 127.0.0.1:{port}
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/acl
    max_life = 10h
    max_renewable_life = 7d
  }}
[logging]
  kdc = FILE:{folder}/kdc.log
"""


class Realm(NamedTuple):
    """A running KDC, and the folder of all that belongs to it."""

    folder: Path
    port: int

    @property
    def config(self) -> Path:
        """The configuration file of clients. Java gets it by `-Djava.security.krb5.conf`."""
        return self.folder / "krb5.conf"

    def add(self, *principals: str, options: Sequence[str] = ()) -> None:
        """Add principals with random keys."""
        for principal in principals:
            self.administer(f"addprinc -randkey {' '.join(options)} {principal}")

    def keytab(self, name: str, *principals: str) -> str:
        """Write a file with the keys of principals without changing the keys, and return its path."""
        place = self.folder / name
        for principal in principals:
            self.administer(f"ktadd -norandkey -k {place} {principal}")
        return str(place)

    def administer(self, command: str) -> str:
        """Run a command of kadmin."""
        return run("kadmin.local", "-r", REALM, "-q", command)

    def tickets(self, keytab: str, principal: str, *options: str, cache: str = "tickets") -> str:
        """Log in with a keytab, and return the cache with the ticket."""
        place = f"FILE:{self.folder / cache}"
        run("kinit", *options, "-c", place, "-k", "-t", keytab, principal)
        return place


def missing() -> str | None:
    """Return a sentence on a missing program or package that a realm needs; None if nothing is missing."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=FOLDERS) is None]
    if absent:
        absence = f"there is no {absent[0]} here, which these tests start"
    elif importlib.util.find_spec("gssapi") is None:
        absence = "there is no Python package gssapi here, by which Ottla speaks Kerberos"
    else:
        return None
    return f"{absence}: run `sh tools/kerberos.sh` as root, or install krb5-kdc, krb5-admin-server, krb5-user and libkrb5-dev first"


@contextmanager
def realm(ahead_seconds: int = 0) -> Iterator[Realm]:
    """Run a realm, set in the environment until the end. Its clock may be ahead of the machine's."""
    with TemporaryDirectory(prefix="kerberos-") as folder:
        made = Realm(Path(folder), free_port())
        for name, text in (("krb5.conf", CLIENTS), ("kdc.conf", SERVER)):
            (made.folder / name).write_text(text.format(realm=REALM, folder=folder, port=made.port))
        places = {
            "KRB5_CONFIG": str(made.config),
            "KRB5_KDC_PROFILE": f"{folder}/kdc.conf",
            "KRB5CCNAME": f"FILE:{folder}/nobody",
            "KRB5_KTNAME": f"FILE:{folder}/nothing.keytab",
            "KRB5_CLIENT_KTNAME": f"FILE:{folder}/nothing.keytab",
            "KRB5RCACHEDIR": folder,
        }
        with patch.dict("os.environ", places):
            run("kdb5_util", "-r", REALM, "create", "-s", "-P", "of-the-database")
            with kdc(made, ahead_seconds):
                yield made


@contextmanager
def kdc(made: Realm, ahead_seconds: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run the KDC of a created realm."""
    command = [found("krb5kdc"), "-n", "-r", REALM, "-P", str(made.folder / "pid"), "-T", str(ahead_seconds)]
    log = made.folder / "kdc.log"
    log.write_text("")
    with (made.folder / "output").open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + READY_SECONDS
        while "commencing operation" not in log.read_text(errors="replace"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"krb5kdc did not start:\n{(made.folder / 'output').read_text(errors='replace')}")
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        process.wait()


def found(program: str) -> str:
    place = shutil.which(program, path=FOLDERS)
    if place is None:
        raise RuntimeError(missing())
    return place


def run(program: str, *arguments: str) -> str:
    """Return the output of a program. RuntimeError with the output if it fails; kadmin reports a failure only in its output."""
    result = subprocess.run(
        [found(program), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if result.returncode or "while " in result.stdout:
        raise RuntimeError(f"{program} {' '.join(arguments)} failed:\n{result.stdout}")
    return result.stdout
