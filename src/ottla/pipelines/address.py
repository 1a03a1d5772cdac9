"""Addresses, and how people may see them."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from ottla.ports import HIGHEST_PORT, is_port

PLACEHOLDER = re.compile(r"\$\{[^}]*\}")
WEB = ("http", "https")
BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def check_port(url: str) -> None:
    """ValueError where a port of an address can be none, or what comes before it is cut off by a character of its own."""
    check_user(url)
    if (port := wrong_port(url)) is not None:
        raise ValueError(f"port {port!r} is none, which is a number up to {HIGHEST_PORT}; correct it")


def wrong_port(url: str) -> str | None:
    """The first port of an address that can be none; None where all can, or are not known yet."""
    host = urlsplit(url).netloc.rpartition("@")[2] if "://" in url and "${" not in url else ""
    for one in host.split(","):  # PostgreSQL's may name several servers
        port = one.rpartition("]")[2].partition(":")[2]
        if port and not (is_port(port) and int(port)):
            return port
    return None


def check_user(url: str) -> None:
    """ValueError where a user or password has a character that ends this part of an address; the sentence has none of it."""
    scheme, _, rest = url.partition("://")
    authority = re.split(r"[/?#]", PLACEHOLDER.sub("x", rest), maxsplit=1)[0]
    user = authority.rpartition("@")[0]
    path = rest.partition("?")[0]
    is_cut = "@" not in authority and (
        ("@" in rest and not is_host(authority)) or ("@" in path and scheme not in WEB and ":" in authority)
    )
    if is_cut or "@" in user or BROKEN_ESCAPE.search(user):
        raise ValueError(
            "a user or password with one of # ? / @ % in it cannot stand in an address as it is; write ${env:NAME} in its place, or those "
            "characters percent-encoded, such as %23 for #"
        )


def is_host(authority: str) -> bool:
    """True if it is hosts with ports, and not the first part of a password."""
    return all(not (port := one.rpartition("]")[2].partition(":")[2]) or is_port(port) for one in authority.split(","))


def check_files(path: str) -> str:
    """Return a path of files that Spark reads or writes; ValueError where its scheme is one that Hadoop does not know."""
    scheme, found, rest = path.partition("://")
    if found and scheme in ("s3", "s3n"):
        raise ValueError(
            f"{path!r}: Hadoop knows S3 as s3a; write s3a://{rest}, and settings: {{spark: {{spark.jars.packages: "
            "org.apache.hadoop:hadoop-aws:VERSION}} brings the jar, in the version of Spark's own Hadoop"
        )
    return path


def shown(url: str) -> str:
    """The address without user, password and what follows its path, all of which may be secret."""
    scheme, there, rest = url.partition("://")
    if not there:
        return url  # a placeholder
    authority = rest.partition("/")[0]
    may_have_more = scheme in WEB and is_host(authority.rpartition("@")[2])  # where an @ in a path is usual
    if not may_have_more and (":" in authority or "@" in authority):
        rest = rest.rpartition("@")[2]  # the last one: in a password that is not encoded there may be others
    parts = urlsplit(f"{scheme}://{rest}")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
