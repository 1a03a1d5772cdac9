"""Checks of addresses, and addresses without their secrets for messages."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from ottla.ports import HIGHEST_PORT, is_port

PLACEHOLDER = re.compile(r"\$\{[^}]*\}")
WEB = ("http", "https")
BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def check_port(url: str) -> None:
    """Raise ValueError for an invalid port, or for a user or password with a character that ends this part of an address."""
    check_user(url)
    if (port := wrong_port(url)) is not None:
        raise ValueError(f"port {port!r} is not valid: expected a number from 1 to {HIGHEST_PORT}")


def wrong_port(url: str) -> str | None:
    """Return the first invalid port of an address; None if all are valid or not known yet."""
    host = urlsplit(url).netloc.rpartition("@")[2] if "://" in url and "${" not in url else ""
    for one in host.split(","):  # PostgreSQL addresses may name several servers
        port = one.rpartition("]")[2].partition(":")[2]
        if port and not (is_port(port) and int(port)):
            return port
    return None


def check_user(url: str) -> None:
    """Raise ValueError if a user or password has a character that ends this part of an address.

    The error text has no part of it.
    """
    scheme, _, rest = url.partition("://")
    authority = re.split(r"[/?#]", PLACEHOLDER.sub("x", rest), maxsplit=1)[0]
    user = authority.rpartition("@")[0]
    path = rest.partition("?")[0]
    is_cut = "@" not in authority and (
        ("@" in rest and not is_host(authority)) or ("@" in path and scheme not in WEB and ":" in authority)
    )
    if is_cut or "@" in user or BROKEN_ESCAPE.search(user):
        raise ValueError(
            "a user or password with one of # ? / @ % in it is not valid in an address; write ${env:NAME} in its place, or those "
            "characters percent-encoded, such as %23 for #"
        )


def is_host(authority: str) -> bool:
    """Return True if the text is hosts with ports, and not the first part of a password."""
    return all(not (port := one.rpartition("]")[2].partition(":")[2]) or is_port(port) for one in authority.split(","))


def check_files(path: str) -> str:
    """Return a path of files that Spark reads or writes; ValueError if Hadoop has no file system for its scheme."""
    scheme, found, rest = path.partition("://")
    if found and scheme in ("s3", "s3n"):
        raise ValueError(
            f"{path!r}: Hadoop's scheme for S3 is s3a; write s3a://{rest}, and settings: {{spark: {{spark.jars.packages: "
            "org.apache.hadoop:hadoop-aws:VERSION}} brings the jar, in the version of Spark's own Hadoop"
        )
    return path


def without_secrets(url: str) -> str:
    """Return the address without user, password and everything after its path, all of which may be secret."""
    scheme, there, rest = url.partition("://")
    if not there:
        return url  # a placeholder
    authority = rest.partition("/")[0]
    may_have_more = scheme in WEB and is_host(authority.rpartition("@")[2])  # where an @ in a path is usual
    if not may_have_more and (":" in authority or "@" in authority):
        rest = rest.rpartition("@")[2]  # the last @: a password that is not encoded may contain others
    parts = urlsplit(f"{scheme}://{rest}")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
