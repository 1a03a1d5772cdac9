"""Run all benchmarks, or the named ones, and save their output: `python -m benchmarks [clients …]`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
OUT = Path("out")


def scripts() -> list[str]:
    """Return the modules of this folder that can be run."""
    runnable = (file for file in sorted(HERE.glob("*.py")) if not file.name.startswith("_"))
    return [file.stem for file in runnable if 'if __name__ == "__main__":' in file.read_text(encoding="utf-8")]


def run(name: str) -> int:
    """Run one script and copy its output to `out/bench-<name>.txt`."""
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    with (
        (OUT / f"bench-{name}.txt").open("w", encoding="utf-8") as kept,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            kept.write(line)
    return process.returncode


def main() -> None:
    known = scripts()
    wanted = sys.argv[1:] or known
    if unknown := sorted(set(wanted) - set(known)):
        sys.exit(f"there is no benchmark {unknown[0]!r}; there are {', '.join(known)}")
    OUT.mkdir(exist_ok=True)
    failed = [name for name in wanted if run(name)]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
