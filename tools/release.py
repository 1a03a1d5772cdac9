"""Build a release in dist/ from a clean tree, and check it: `make release`. Nothing is uploaded.

The version is that of `src/ottla/_version.py`; the changelog has a section for it, and a tag of this commit has its name. The source
distribution and a wheel are built twice with the time of the commit (SOURCE_DATE_EPOCH) and compared byte by byte. In addition: wheels
for each Python found here, the image's root file system, a bill of materials (CycloneDX), the licences of all dependencies, and checksums.
The argument `check` checks the version only.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ottla._version import __version__
from tools import image, wheels
from tools.wheels import DIST, ROOT, environment, pip, run

VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
BUILD_TOOLS = ("build==1.6.1",)
SBOM_TOOLS = ("cyclonedx-bom==7.5.0",)
NOT_FOR_USERS = {"dev", "test", "docs", "demo"}
"""Extras whose packages no user of Ottla gets."""
UNKNOWN = "unknown"


def main() -> None:
    check_version((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), tags_of_commit(), __version__)
    if "check" in sys.argv[1:]:
        return
    if changed := run(["git", "-C", ROOT, "status", "--porcelain"]).strip():
        sys.exit(f"make release: the tree has changes that are not committed:\n{changed}")
    epoch = run(["git", "-C", ROOT, "log", "-1", "--format=%ct"]).strip()
    os.environ["SOURCE_DATE_EPOCH"] = epoch
    check_reproducible(int(epoch))
    wheels.main(lambda source: repack(source, int(epoch)))
    write_bill_of_materials()
    write_licences()
    if os.geteuid() == 0 and shutil.which("mmdebstrap"):
        image.main()
        pack_image(DIST / f"ottla-image-{__version__}.tar.gz", int(epoch))
    else:
        print("make release: no image: it needs root and mmdebstrap", flush=True)
    write_checksums()
    print(
        f"make release: version {__version__} is in {DIST.relative_to(ROOT)}; publish it by pushing the tag v{__version__}"
    )


def check_version(changelog: str, tags: Iterable[str], version: str) -> None:
    """Exit with the reason if the version, the changelog and the tag of this commit differ."""
    if not VERSION.fullmatch(version):
        sys.exit(f"make release: invalid version {version!r} in src/ottla/_version.py: expected 1.2.3, or 1.2.3rc1")
    if not re.search(rf"^## {re.escape(version)} — \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        sys.exit(f"make release: CHANGELOG.md has no section '## {version} — YEAR-MONTH-DAY'")
    unreleased = changelog.partition("## Unreleased\n")[2].partition("\n## ")[0]
    tags = [tag for tag in tags if tag.startswith("v")]
    if tags and f"v{version}" not in tags:
        sys.exit(f"make release: this commit has the tag {tags[0]}, and its version is {version}: expected v{version}")
    if tags and re.search(r"^\* ", unreleased, re.MULTILINE):
        sys.exit(f"make release: CHANGELOG.md has unreleased changes at the tag {tags[0]}: move them to its section")


def tags_of_commit() -> list[str]:
    return run(["git", "-C", ROOT, "tag", "--points-at", "HEAD"]).split()


def check_reproducible(epoch: int) -> None:
    """Build source and wheel twice, each in a fresh copy of the commit. Exit if a byte differs."""
    with TemporaryDirectory(prefix="ottla-release-") as folder:
        work = Path(folder)
        tools = environment(sys.executable, work / "tools")
        pip(tools, "install", *BUILD_TOOLS)
        digests = [build_once(tools, work / str(number), epoch) for number in range(2)]
    different = [name for name in digests[0] if digests[0][name] != digests[1].get(name)]
    if different:
        sys.exit(f"make release: two builds of this commit differ in {', '.join(different)}")
    print(f"reproducible: {', '.join(digests[0])}", flush=True)


def build_once(tools: Path, folder: Path, epoch: int) -> dict[str, str]:
    """Return the digests of a source distribution and a wheel, built from the files of this commit."""
    folder.mkdir()
    run(["git", "-C", ROOT, "archive", "--output", folder / "tree.tar", "HEAD"])
    with tarfile.open(folder / "tree.tar") as archive:
        archive.extractall(folder / "tree", filter="data")
    command: list[str | Path] = [tools / "bin" / "python", "-m", "build", "--outdir", folder / "dist", folder / "tree"]
    run(command, OTTLA_COMPILE=os.environ.get("OTTLA_COMPILE", "must"))
    repack(next((folder / "dist").glob("*.tar.gz")), epoch)
    return {file.name: digest(file) for file in sorted((folder / "dist").iterdir())}


def repack(archive: Path, epoch: int) -> None:
    """Write a tar.gz again with sorted members that have no owner and the time `epoch`: setuptools uses the time of the build."""
    part = archive.with_suffix(".part")
    with (
        tarfile.open(archive) as before,
        part.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=epoch) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as after,
    ):
        for member in sorted(before.getmembers(), key=lambda each: each.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            after.addfile(member, before.extractfile(member) if member.isreg() else None)
    part.replace(archive)


def pack_image(target: Path, epoch: int) -> None:
    """Write the root file system of the image, which `docker import` and `podman import` read."""
    options = ("--sort=name", f"--mtime=@{epoch}", "--numeric-owner", "--one-file-system", "--xattrs")
    tar = ["tar", *options, "--directory", str(image.BUILT), "--create", "."]
    with target.open("wb") as file, subprocess.Popen(tar, stdout=subprocess.PIPE) as packing:
        subprocess.run(["gzip", "--no-name"], stdin=packing.stdout, stdout=file, check=True)
    if packing.returncode:
        sys.exit(f"make release: {target.name} could not be written; the reason is above")


def write_bill_of_materials() -> None:
    """Write dist/ottla.cdx.json: the packages of all extras for users, as installed in .venv."""
    with TemporaryDirectory(prefix="ottla-sbom-") as folder:
        tools = environment(sys.executable, Path(folder) / "tools")
        pip(tools, "install", *SBOM_TOOLS)
        command: list[str | Path] = [
            tools / "bin" / "cyclonedx-py",
            "environment",
            "--pyproject",
            ROOT / "pyproject.toml",
            "--mc-type",
            "library",
        ]
        run(
            [
                *command,
                "--output-reproducible",
                "--of",
                "JSON",
                "--output-file",
                Path(folder) / "all.json",
                sys.executable,
            ]
        )
        bill = json.loads((Path(folder) / "all.json").read_text(encoding="utf-8"))
    bill = select_components(bill, set(dependencies()))
    bill["metadata"]["component"]["version"] = __version__
    (DIST / "ottla.cdx.json").write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
    print(f"bill of materials: {len(bill['components'])} components", flush=True)


def select_components(bill: dict[str, Any], names: set[str]) -> dict[str, Any]:
    """Return the bill of materials with the components of these names, and the dependencies between them."""
    components = [each for each in bill.get("components", []) if canonicalize_name(each["name"]) in names]
    kept = {each["bom-ref"] for each in components} | {bill["metadata"]["component"]["bom-ref"]}
    graph = [each for each in bill.get("dependencies", []) if each["ref"] in kept]
    for each in graph:
        if "dependsOn" in each:
            each["dependsOn"] = [ref for ref in each["dependsOn"] if ref in kept]
    return bill | {"components": components, "dependencies": graph}


def write_licences() -> None:
    """Write dist/licences.tsv. Exit if the licence of a package is unknown."""
    found = {name: (dist.version, licence_of(dist)) for name, dist in sorted(dependencies().items())}
    lines = [f"{name}\t{version}\t{licence}\n" for name, (version, licence) in found.items()]
    (DIST / "licences.tsv").write_text("".join(lines), encoding="utf-8")
    if unknown := [name for name, (_, licence) in found.items() if licence == UNKNOWN]:
        sys.exit(f"make release: no licence is known of {', '.join(unknown)}")
    print(f"licences: {len(found)} packages", flush=True)


def dependencies() -> dict[str, Distribution]:
    """Return the installed packages that Ottla and its extras for users need, by name."""
    found: dict[str, Distribution] = {}
    own = distribution("ottla")
    extras = set(own.metadata.get_all("Provides-Extra") or ()) - NOT_FOR_USERS
    waiting = list(required(own, extras))
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name == "ottla" or (name in found and not requirement.extras):
            continue
        try:
            found[name] = distribution(requirement.name)
        except PackageNotFoundError:
            continue  # an extra that is not installed here, such as kerberos
        waiting += required(found[name], requirement.extras)
    return found


def required(dist: Distribution, extras: Iterable[str]) -> Iterator[Requirement]:
    """Yield the requirements of a package with these extras, on this system."""
    for text in dist.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def licence_of(dist: Distribution) -> str:
    """Return the licence of a package as an SPDX expression or as its classifiers or its short text name it."""
    if "License-Expression" in dist.metadata:
        return dist.metadata["License-Expression"]
    classifiers = dist.metadata.get_all("Classifier") or ()
    named = [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License :: ")]
    named = [each for each in named if each != "OSI Approved"]
    text = (dist.metadata["License"].strip() if "License" in dist.metadata else "") or licence_file(dist).strip()
    return " AND ".join(named) or (text.splitlines()[0] if text else UNKNOWN)


def licence_file(dist: Distribution) -> str:
    """Return the text of a package's licence file, whose first line names the licence; empty without one."""
    files = [each for each in dist.files or () if each.name.upper().startswith(("LICENSE", "LICENCE"))]
    return files[0].read_text(encoding="utf-8") if files else ""


def write_checksums() -> None:
    files = [file for file in sorted(DIST.iterdir()) if file.is_file() and file.name != "SHA256SUMS"]
    (DIST / "SHA256SUMS").write_text("".join(f"{digest(file)}  {file.name}\n" for file in files), encoding="utf-8")


def digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


if __name__ == "__main__":
    main()
