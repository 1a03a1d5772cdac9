"""`ottla certificates`: a certificate authority, server and client certificates for tests."""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.options import json_option
from ottla.cli.output import echo
from ottla.cli.tables import show

LOOPBACK = ("127.0.0.1", "::1")
FOLDER = click.argument("folder", type=click.Path(path_type=Path))


@click.group(cls=CommandGroup)
def certificates() -> None:
    """Create certificates for tests of TLS: an authority, then server and client certificates signed by it."""


@certificates.command()
@FOLDER
@json_option
def authority(folder: Path, in_json: bool) -> None:
    """Create an authority: distribute ca.pem to clients, keep ca-key.pem secret."""
    from ottla.certificates import AUTHORITY, AUTHORITY_KEY, Authority, write_new

    own = Authority.made().own
    written = write_new(folder / AUTHORITY_KEY, own.key), write_new(folder / AUTHORITY, own.certificate)
    print_files(*written, in_json=in_json)
    echo(f"clients trust it with ssl.truststore.location={folder / AUTHORITY}", err=True)


@certificates.command()
@FOLDER
@click.option("--host", "hosts", multiple=True, default=("localhost",), show_default=True)
@json_option
def server(folder: Path, hosts: tuple[str, ...], in_json: bool) -> None:
    """Create a broker's certificate for the host names that clients use; localhost includes the loopback addresses."""
    from ottla.certificates import Authority, write_new

    written = write_new(folder / "server.pem", Authority.in_folder(folder).server(reached_by(hosts)).both)
    print_files(written, in_json=in_json)
    echo(f"a broker uses it with ssl.keystore.location={written}", err=True)


@certificates.command()
@FOLDER
@click.argument("name")
@json_option
def client(folder: Path, name: str, in_json: bool) -> None:
    """Create a client's certificate. With TLS authentication its principal is User:CN=NAME."""
    from ottla.certificates import Authority, write_new

    if not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise click.UsageError(f"invalid name {name!r}: expected letters, digits, dots, dashes and underscores")
    written = write_new(folder / f"client-{name}.pem", Authority.in_folder(folder).client(name).both)
    print_files(written, in_json=in_json)
    echo(f"a client uses it with ssl.keystore.location={written}", err=True)


def reached_by(hosts: tuple[str, ...]) -> list[str]:
    """Return the host names of a certificate; brokers may advertise a loopback address to clients that use localhost."""
    return list(dict.fromkeys([*hosts, *(LOOPBACK if "localhost" in hosts else ())]))


def print_files(*files: Path, in_json: bool) -> None:
    """Print the names of written files on standard output, one per line."""
    if in_json:
        show(("FILE",), [(str(file),) for file in files], in_json=True)
        return
    for file in files:
        echo(str(file))
