"""Build the root file system of the image in out/image and test it, without a container engine: `make image`.

The steps are those of `packaging/image/Containerfile`: a wheel for Python 3.13, then `build_root.sh`. Then the entry point runs
as process 1 of a namespace without a network, as user 1000, with the scripts of the image apache/kafka and of testcontainers.
Needs root on Linux, Debian's mmdebstrap and Python 3.13.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.wheels import DIST, PYENV, ROOT, environment, pip, run

PACKAGING = ROOT / "packaging"
IMAGE = PACKAGING / "image"
BUILT = ROOT / "out" / "image"
LARGEST_MB = 120
TESTCONTAINERS = ("testcontainers==4.15.0", "packaging>=24")
SCHEMAS = ("kubernetes-validate==1.37.0", "jsonschema==4.26.0", "PyYAML==6.0.4")
COMPOSE = "docker-compose==1.29.2"
"""The last version in Python, with the schema of compose files."""
WORST_EXPOSURE = 15
"""Tenths of the scale of `systemd-analyze security`, on which 100 is an unprotected service."""
VALIDATE = "import json, sys, yaml, jsonschema; jsonschema.validate(yaml.safe_load(open(sys.argv[1])), json.load(open(sys.argv[2])))"
PYTHON = "python3.13"


def main() -> None:
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        sys.exit("make image: it needs root on Linux and mmdebstrap (Debian: apt install mmdebstrap binutils)")
    with TemporaryDirectory(prefix="ottla-image-") as folder:
        work = Path(folder)
        build_image(work, find_wheel(work))
        check_size()
        tools = environment(sys.executable, work / "tools")
        pip(tools, "install", *TESTCONTAINERS, *SCHEMAS)
        check_files(tools, work)
        script: list[str | Path] = [tools / "bin" / "python", ROOT / "tools" / "testcontainers_script.py"]
        (BUILT / "tc-start.sh").write_text(run(script), encoding="utf-8")
        command: list[str | Path] = ["unshare", "--net", sys.executable, "-m", "tools.image_check", BUILT]
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            sys.exit("make image: the image does not work; the reason is above")


def find_wheel(work: Path) -> Path:
    """Return the wheel for Python 3.13 in dist/, or build one from this tree."""
    for wheel in DIST.glob("ottla-*-cp313-cp313-*linux*.whl"):
        return wheel
    found = shutil.which(PYTHON) or next(map(str, sorted(PYENV.glob(f"3.13*/bin/{PYTHON}"))), "")
    if not found:
        sys.exit(f"make image: there is no wheel for Python 3.13 in dist/ and no {PYTHON} here that could build one")
    builder = environment(found, work / "builder")
    pip(builder, "wheel", "--no-deps", "--wheel-dir", str(work), str(ROOT), OTTLA_COMPILE="must")
    return next(work.glob("ottla-*.whl"))


def build_image(work: Path, wheel: Path) -> None:
    """Run the script of the Containerfile with the files that it copies."""
    context = work / "context"
    shutil.copytree(IMAGE, context)
    shutil.copy(ROOT / "constraints.txt", context)
    shutil.copy(wheel, context)
    shutil.rmtree(BUILT, ignore_errors=True)
    BUILT.parent.mkdir(exist_ok=True)
    run(["sh", context / "build_root.sh", BUILT, context], PIP=f"{sys.executable} -m pip")


def check_files(tools: Path, work: Path) -> None:
    """Check manifests and the compose file by their schemas, and the units by systemd if it is installed."""
    for manifest in sorted((PACKAGING / "kubernetes").glob("*.yaml")):
        run([tools / "bin" / "kubernetes-validate", "--strict", manifest])
    pip(tools, "download", "--no-deps", "--dest", str(work / "compose"), COMPOSE)
    with zipfile.ZipFile(next((work / "compose").glob("*.whl"))) as wheel:
        schema = wheel.extract("compose/config/compose_spec.json", work)
    run([tools / "bin" / "python", "-c", VALIDATE, PACKAGING / "compose.yaml", schema])
    if shutil.which("systemd-analyze"):
        for file in sorted((PACKAGING / "systemd").glob("*.service")):
            unit = work / file.name
            text = file.read_text(encoding="utf-8")
            unit.write_text(text.replace("/opt/ottla/bin/ottla", "/bin/true"), encoding="utf-8")  # which exists here
            run(["systemd-analyze", "verify", unit])
            run(["systemd-analyze", "security", "--offline=true", f"--threshold={WORST_EXPOSURE}", unit])
    print("manifests, compose file and units are valid", flush=True)


def check_size() -> None:
    used = run(["du", "-sm", "--apparent-size", BUILT]).split()[0]
    print(f"image: {used} MB in {BUILT.relative_to(ROOT)}", flush=True)
    if int(used) > LARGEST_MB:
        sys.exit(f"make image: the image has {used} MB; at most {LARGEST_MB} are expected")


if __name__ == "__main__":
    main()
