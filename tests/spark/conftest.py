"""One Spark session and one broker for all tests of the source and sink."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ottla import Broker
from ottla.spark import JavaError
from ottla.spark.driver.class_archive import OPTIONS
from ottla.spark.failure import HIDE
from tests.spark.topics import Topics, new_session
from tools.class_archive import QUICK, driver_options, place

HERE = Path(__file__).parent
WITHOUT = f"-Xshare:auto {QUICK}"
"""A user's own choice of an archive: commands of these tests must not make one."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All files with tests of the session by one process where tests run in several, as two Sparks would only be in
    each other's way; and that one begins with them, as they take the longest. Of the others each file by one process.
    """
    here = {path for path in {item.path for item in items} if path.is_relative_to(HERE)}
    shared = {item.path for item in items if item.path in here and asks_for_session(item)}
    for item in items:
        if item.path in here:
            item.add_marker(pytest.mark.xdist_group("spark" if item.path in shared else item.path.stem))
    items.sort(key=lambda item: item.path not in shared)


def asks_for_session(item: pytest.Item) -> bool:
    return not {"spark", "broker", "topics"}.isdisjoint(getattr(item, "fixturenames", ()))


@pytest.fixture(autouse=True)
def errors_keep_their_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reset the setting that hides tracebacks, which is meant for Spark workers and not for this process or a Spark
    started by it.
    """
    monkeypatch.setenv(HIDE, "")
    monkeypatch.delenv(HIDE)


@pytest.fixture(scope="session", autouse=True)
def quick_drivers() -> Iterator[None]:
    """Has every Spark driver that is started from here compile no more than pays in a test, and start in half the time
    where `make demo` or `make interop` made the archive of classes: the few that start here would not earn one.
    """
    with pytest.MonkeyPatch.context() as patch:
        with suppress(JavaError):
            archive = place()
            patch.setenv(OPTIONS, driver_options(archive) if archive.exists() else WITHOUT)
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Without a Java the tests of Spark fail with the sentence that says so; they are not skipped in silence."""
    try:
        session = new_session(str(tmp_path_factory.mktemp("warehouse")))
    except JavaError as error:
        pytest.fail(str(error), pytrace=False)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker in a process of its own: other tests inject faults into the file calls of this process.

    Its directory stays: to delete some thousand topics takes half a minute.
    """
    path = tmp_path_factory.mktemp("broker")
    with Broker(path, process=True, log_retention_ms=-1) as running:  # records of any age stay
        yield running


@pytest.fixture
def topics(spark: SparkSession, broker: Broker, request: pytest.FixtureRequest) -> Topics:
    """Topics of this test's own."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return Topics(spark, broker.bootstrap_servers, f"{abs(hash(name)):x}-{name}"[:100])
