"""Collect facts about this machine: Python, packages, Java, limits, and data directories."""

from __future__ import annotations

import platform
import re
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


def collect_machine_facts() -> MachineFacts:
    return MachineFacts(
        python=platform.python_version(),
        loops=len(hot_modules()),
        uncompiled=uncompiled_modules(),
        extras={name: list(packages_of(name)) for name in collect_extras()},
        java=java_of_spark(),
        open_files=open_file_limits(),
    )


def open_file_limits() -> tuple[float, float]:
    """Return the soft and the hard limit of open files; infinite on a system without such limits."""
    if find_spec("resource") is None:
        return float("inf"), float("inf")
    import resource

    soft, hard = (
        float("inf") if limit == resource.RLIM_INFINITY else float(limit)
        for limit in resource.getrlimit(resource.RLIMIT_NOFILE)
    )
    return soft, hard


def read_requirements() -> list[tuple[str, str, str, str]]:
    """Return package, its extras, bounds and Ottla's extra from Ottla's metadata; an empty list if it is not installed."""
    try:
        lines = requires("ottla") or []
    except PackageNotFoundError:
        return []
    found = (REQUIREMENT.match(line) for line in lines)
    return [(match[1], match[2] or "", match[3], match[4]) for match in found if match is not None]


def collect_extras() -> list[str]:
    return sorted({extra for *_, extra in read_requirements()} - set(NOT_FOR_USERS))


def packages_of(extra: str) -> Iterator[Requirement]:
    """Yield the packages that an extra needs, including those of nested extras."""
    for package, inner, bounds, of in read_requirements():
        if of != extra:
            continue
        if package == "ottla":
            for each in inner.split(","):
                yield from packages_of(each)
        else:
            yield Requirement(package, bounds, installed_version(package))


def installed_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def java_of_spark() -> int | str | None:
    """Return the Java version that Spark would use, the error if there is none, or None without pyspark."""
    if find_spec("pyspark") is None:
        return None
    from ottla.spark.driver.java import ensure_java

    try:
        return ensure_java()
    except OttlaError as error:
        return str(error)


def collect_data_facts(paths: Sequence[Path], metadata: Path | None, *, thorough: bool) -> Iterator[DataFacts]:
    """Yield the facts about data directories of a broker. Nothing is changed; the broker may be running.

    One of them, or `metadata`, contains the cluster's metadata.
    """
    from ottla.cli.storage.log import holders_of_metadata, twins_of

    metadata_homes, twins = holders_of_metadata([*paths, *([] if metadata is None else [metadata])]), twins_of(paths)
    for path in paths:
        # The report names a metadata directory only if the user gave it or if it is needed for this directory.
        words = (
            str(metadata)
            if metadata is not None
            else str(metadata_homes[0])
            if metadata_homes and path not in metadata_homes
            else ""
        )
        yield facts_of(path, metadata_homes, twins.get(path), thorough=thorough)._replace(metadata=words)


def facts_of(path: Path, metadata_homes: Sequence[Path], twin: Path | None, *, thorough: bool) -> DataFacts:
    """Return the facts about one directory, with the directories that contain the cluster's metadata."""
    from ottla.cli.storage.log import inspection_at

    try:
        inspection = inspection_at(path, metadata_homes)
        inspection.twin = twin
        disk = shutil.disk_usage(path)
        if thorough:
            checks = inspection.run(lambda size: None)
            faults = [str(fault) for check in checks for fault in check.faults]
        else:
            faults = [str(fault) for fault in inspection.find_quick_faults()]
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
