"""`ottla certificates`: an authority, a server's certificate and a client's, for a laptop."""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.options import json_option
from ottla.cli.output import echo
from ottla.cli.tables import show

LOOPBACK = ("127.0.0.1", "::1")
FOLDER = click.argument("folder", type=click.Path(path_type=Path))


@click.group()
def certificates() -> None:
    """Make certificates to try TLS with: an authority, then a server's and clients' that it signs."""


@certificates.command()
@FOLDER
@json_option
def authority(folder: Path, in_json: bool) -> None:
    """Make an authority: ca.pem is for everybody, ca-key.pem for nobody."""
    from ottla.certificates import AUTHORITY, AUTHORITY_KEY, Authority, write_new

    own = Authority.made().own
    written = write_new(folder / AUTHORITY_KEY, own.key), write_new(folder / AUTHORITY, own.certificate)
    tell(*written, in_json=in_json)
    echo(f"clients trust it with ssl.truststore.location={folder / AUTHORITY}", err=True)


@certificates.command()
@FOLDER
@click.option("--host", "hosts", multiple=True, default=("localhost",), show_default=True)
@json_option
def server(folder: Path, hosts: tuple[str, ...], in_json: bool) -> None:
    """Make a broker's certificate, for the names and addresses that clients reach it by; with localhost go its addresses."""
    from ottla.certificates import Authority, write_new

    written = write_new(folder / "server.pem", Authority.in_folder(folder).server(reached_by(hosts)).both)
    tell(written, in_json=in_json)
    echo(f"a broker shows it with ssl.keystore.location={written}", err=True)


@certificates.command()
@FOLDER
@click.argument("name")
@json_option
def client(folder: Path, name: str, in_json: bool) -> None:
    """Make a client's certificate: to a broker that asks for one it is User:CN=NAME."""
    from ottla.certificates import Authority, write_new

    if not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise click.UsageError(f"{name!r}: a name is of letters, digits, dots, dashes and underscores")
    written = write_new(folder / f"client-{name}.pem", Authority.in_folder(folder).client(name).both)
    tell(written, in_json=in_json)
    echo(f"a client shows it with ssl.keystore.location={written}", err=True)


def reached_by(hosts: tuple[str, ...]) -> list[str]:
    """A broker tells who comes by localhost an address to come back to."""
    return list(dict.fromkeys([*hosts, *(LOOPBACK if "localhost" in hosts else ())]))


def tell(*files: Path, in_json: bool) -> None:
    """Name files on standard output, one a line, for whoever goes on with them."""
    if in_json:
        show(("FILE",), [(str(file),) for file in files], in_json=True)
        return
    for file in files:
        echo(str(file))
