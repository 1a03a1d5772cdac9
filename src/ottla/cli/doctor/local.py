"""Where `ottla doctor` looks on this machine: Python, packages, Java, limits, and data directories."""

from __future__ import annotations

import platform
import re
import resource
import shutil
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path

from ottla.cli.doctor.data import DataFacts
from ottla.cli.doctor.machine import MachineFacts, Requirement
from ottla.compiled import hot_modules, uncompiled_modules
from ottla.errors import ConfigError, CorruptRecordError, OttlaError

NOT_FOR_USERS = ("dev", "test", "docs", "demo")
REQUIREMENT = re.compile(r"([\w.-]+)(?:\[([\w,.-]+)\])?\s*([^;]*?)\s*;\s*extra\s*==\s*['\"]([\w.-]+)['\"]")
"""`pyarrow<27,>=17; extra == "arrow"`."""


def look_at_machine() -> MachineFacts:
    soft, hard = (
        float("inf") if limit == resource.RLIM_INFINITY else float(limit)
        for limit in resource.getrlimit(resource.RLIMIT_NOFILE)
    )
    return MachineFacts(
        python=platform.python_version(),
        loops=len(hot_modules()),
        uncompiled=uncompiled_modules(),
        extras={name: list(packages_of(name)) for name in extras()},
        java=java_of_spark(),
        open_files=(soft, hard),
    )


def requirements() -> list[tuple[str, str, str, str]]:
    """Package, extras of it, bounds and extra of ours, as the installed Ottla says it; nothing where it is not installed."""
    try:
        lines = requires("ottla") or []
    except PackageNotFoundError:
        return []
    found = (REQUIREMENT.match(line) for line in lines)
    return [(match[1], match[2] or "", match[3], match[4]) for match in found if match is not None]


def extras() -> list[str]:
    return sorted({extra for *_, extra in requirements()} - set(NOT_FOR_USERS))


def packages_of(extra: str) -> Iterator[Requirement]:
    """What an extra needs, those of extras within it too."""
    for package, inner, bounds, of in requirements():
        if of != extra:
            continue
        if package == "ottla":
            for each in inner.split(","):
                yield from packages_of(each)
        else:
            yield Requirement(package, bounds, installed(package))


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def java_of_spark() -> int | str | None:
    """As Spark's part looks for it, where there is a Spark."""
    if find_spec("pyspark") is None:
        return None
    from ottla.spark.driver.java import ensure_java

    try:
        return ensure_java()
    except OttlaError as error:
        return str(error)


def look_at_data(paths: Sequence[Path], metadata: Path | None, *, thorough: bool) -> Iterator[DataFacts]:
    """Data directories of a broker, of which one, or `metadata`, has the cluster's metadata; nothing is changed, and a broker may be at work."""
    from ottla.cli.storage.log import holders_of_metadata, twins_of

    told_by, twins = holders_of_metadata([*paths, *([] if metadata is None else [metadata])]), twins_of(paths)
    for path in paths:
        # What a person has named is told of, not one that tells ids of topics anyway.
        words = str(metadata) if metadata is not None else str(told_by[0]) if told_by and path not in told_by else ""
        yield facts_of(path, told_by, twins.get(path), thorough=thorough)._replace(metadata=words)


def facts_of(path: Path, told_by: Sequence[Path], twin: Path | None, *, thorough: bool) -> DataFacts:
    """One of them, by those that have the cluster's metadata."""
    from ottla.cli.storage.log import inspection_at

    try:
        inspection = inspection_at(path, told_by)
        inspection.twin = twin
        disk = shutil.disk_usage(path)
        if thorough:
            checks = inspection.run(lambda size: None)
            faults = [str(fault) for check in checks for fault in check.faults]
        else:
            faults = [str(fault) for fault in inspection.quick()]
    except OSError as error:
        return DataFacts(str(path), unreadable=f"{path}: {error.strerror}")
    except (ConfigError, CorruptRecordError) as error:
        return DataFacts(str(path), unreadable=str(error))
    return DataFacts(
        str(path),
        free=disk.free,
        total=disk.total,
        partitions=len(inspection.folders),
        size=inspection.size_bytes,
        live=inspection.live,
        closed=inspection.live or inspection.was_closed,
        faults=faults,
        thorough=thorough,
    )
