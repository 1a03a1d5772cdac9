"""Run: python -m interop.splits kkk|ooo|ook|kc3 [--seed 7] [--count 8] [--seconds 3,8,14,40] [--kinds apart,killed]."""

from __future__ import annotations

import os
import sys

from interop.splits.network import apart, missing
from interop.splits.run import parsed


def main() -> None:
    parsed(sys.argv[1:])
    why = missing()
    if why:
        raise SystemExit(why)
    command = apart("interop.splits.run", sys.argv[1:])
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
