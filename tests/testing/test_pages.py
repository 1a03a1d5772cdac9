"""The examples of the pages on tests, run unchanged: one file for each block, in one project."""

from __future__ import annotations

import re

import pytest

from tests.testing.pages import PRELUDE, examples_of, settings_of

pytestmark = pytest.mark.heavy

ANYIO = '\n\nimport pytest\n\n\n@pytest.fixture\ndef anyio_backend():\n    return "asyncio"\n'
"""The usual conftest.py of a project that uses anyio's plugin."""
ELSEWHERE = re.compile(r"\bspark,|\bottla_cluster\b")
"""Examples that need Spark are run in tests/spark, and those that need a cluster below."""


def run(pytester: pytest.Pytester, page: str, conftest: str, files: list[str]) -> pytest.RunResult:
    pytester.makepyprojecttoml(settings_of(page))
    pytester.makeconftest(conftest)
    pytester.makepyfile(**{f"test_block_{number}": PRELUDE + text for number, text in enumerate(files)})
    return pytester.runpytest_subprocess("-p", "no:xdist", timeout=300)


def split(page: str) -> tuple[list[str], list[str]]:
    """Split a page into tests that need one broker and tests that need a cluster."""
    plain, crowded = [], []
    for block in examples_of(page):
        head, *tests = re.split(r"^(?=(?:@.*\n)?(?:async )?def test_)", block, flags=re.MULTILINE)
        plain.append(head + "".join(each for each in tests if not ELSEWHERE.search(each)))
        crowded += [head + each for each in tests if "ottla_cluster" in each]
    return plain, crowded


@pytest.mark.parametrize("page", ["testing.md", "migrating-from-testcontainers.md"])
def test_a_page_can_be_followed(pytester: pytest.Pytester, page: str) -> None:
    files = [text.replace("import ottla.spark", "") for text in split(page)[0]]
    if page == "migrating-from-testcontainers.md":
        files = ["\n\n".join(files)]  # the second block continues the first
    result = run(pytester, page, ANYIO, files)
    result.assert_outcomes(passed=sum(len(re.findall(r"def test_", text)) for text in files))


def test_the_cluster_examples_of_a_page_leave_all_nodes_running(pytester: pytest.Pytester) -> None:
    crowded = split("testing.md")[1]
    after = "def test_after(ottla_cluster):\n    assert ottla_cluster.running == (1, 2, 3)\n"
    result = run(pytester, "testing.md", "", ["\n\n".join([*crowded, after])])
    result.assert_outcomes(passed=len(crowded) + 1)
