"""The setup reports a missing tool in one sentence, and works without a compiler."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import conftest
import pytest

from tools import build_backend, install, newest

ROOT = Path(__file__).parent.parent.parent
PLAIN_TOOLS = ("sh", "sed", "head", "cat")


class Machine:
    """A PATH with a few plain tools, and scripts in place of the others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands = folder / "bin"
        self.commands.mkdir()
        for tool in PLAIN_TOOLS:
            (self.commands / tool).symlink_to(shutil.which(tool) or tool)
        self.has("id", "echo 1000")

    def has(self, command: str, script: str) -> None:
        """Install a script in place of `command`."""
        file = self.commands / command
        file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        file.chmod(0o755)

    def run(self, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        # The scripts add the system's folders at the end of PATH for dpkg; there is nothing else in those that they use.
        command = [str(self.commands / "sh"), str(ROOT / "tools" / script), *arguments]
        environment = {"PATH": str(self.commands)} | environment
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def python(version: str, *, venv: bool) -> str:
    """Return a script with the answers of a Python to venv.sh."""
    major, minor = map(int, version.split("."))
    modern = 0 if (major, minor) >= (3, 11) else 1
    return f'case "$2" in\n*exit*) exit {modern} ;;\n*print*) echo {version} ;;\n*ensurepip*) exit {0 if venv else 1} ;;\nesac'


def test_an_old_python_is_named_with_its_version(machine: Machine) -> None:
    machine.has("python3", python("3.9", venv=True))
    result = machine.run("venv.sh")
    assert result.returncode == 1
    assert result.stderr == "make install: python3 is Python 3.9, Ottla needs 3.11 or newer; name one with PYTHON=…\n"


def test_a_newer_python_is_used_instead_of_an_old_one(machine: Machine) -> None:
    machine.has("python3", python("3.9", venv=True))
    machine.has("python3.12", f'echo "$@" >> {machine.folder}/asked\n' + python("3.12", venv=True))
    assert machine.run("venv.sh").returncode == 0
    assert (machine.folder / "asked").read_text().splitlines()[-1] == "-m venv --clear .venv"


def test_a_requested_python_that_is_missing_is_named(machine: Machine) -> None:
    result = machine.run("venv.sh", PYTHON="python3.99")
    assert result.stderr == "make install: there is no python3.99 here; name another with PYTHON=…\n"


def test_a_python_that_does_not_run_is_named_with_its_output(machine: Machine) -> None:
    machine.has("python3.13", "echo 'pyenv: python3.13: command not found' >&2; exit 127")
    result = machine.run("venv.sh", PYTHON="python3.13")
    assert result.returncode == 1
    assert result.stderr == (
        "make install: python3.13 does not run here (pyenv: python3.13: command not found);"
        " name another Python with PYTHON=…\n"
    )


def test_a_missing_venv_module_is_named_with_its_package(machine: Machine) -> None:
    machine.has("python3", python("3.11", venv=False))
    result = machine.run("venv.sh")
    assert result.returncode == 1
    assert result.stderr.startswith("make install: python3 has no venv module; install the package python3.11-venv")


def test_as_root_a_missing_venv_module_is_installed(machine: Machine) -> None:
    machine.has("id", "echo 0")
    machine.has("apt-get", f'echo "$@" >> {machine.folder}/apt')
    machine.has("python3", python("3.11", venv=False))
    assert machine.run("venv.sh").returncode == 0
    assert "install -y -qq python3.11-venv" in (machine.folder / "apt").read_text()


@pytest.mark.parametrize(
    ("says", "sentence"),
    [
        ('openjdk version "11.0.2" 2019-01-15', "make java: the Java here is version 11; Spark needs Java 17 or newer"),
        ('java version "1.8.0_432"', "make java: the Java here is version 8; Spark needs Java 17 or newer"),
    ],
)
def test_an_old_java_is_named_with_its_version(machine: Machine, says: str, sentence: str) -> None:
    machine.has("java", f"echo '{says}' >&2")
    result = machine.run("java.sh")
    assert result.returncode == 1
    assert result.stderr.startswith(sentence)


def test_a_missing_java_is_reported_with_the_remedy(machine: Machine) -> None:
    result = machine.run("java.sh")
    expected = (
        "make java: there is no Java here; Spark needs Java 17 or newer: install a JRE, or set JAVA_HOME to one\n"
    )
    assert (result.returncode, result.stderr) == (1, expected)


@pytest.mark.parametrize("says", ['openjdk version "17.0.15" 2025-04-15', 'openjdk version "25" 2025-09-16'])
def test_a_modern_java_is_used_silently(machine: Machine, says: str) -> None:
    machine.has("java", f"echo '{says}' >&2")
    result = machine.run("java.sh")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_missing_maven_is_reported(machine: Machine) -> None:
    machine.has("java", "echo 'openjdk version \"21.0.1\"' >&2")
    result = machine.run("java.sh", "maven")
    assert result.returncode == 1
    assert result.stderr.startswith("make java: there is no Maven (mvn) here")


def build(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Build a package of one hot loop with the project's setup.py."""
    shutil.copy(ROOT / "setup.py", folder)
    package = folder / "src" / "ottla"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").touch()
    for name in ("one", "two"):
        (package / f"{name}.py").write_text("def twice(n: int) -> int:\n    return n * 2\n", encoding="utf-8")
        (package / f"{name}.pxd").write_text("cpdef long twice(long n)\n", encoding="utf-8")
    metadata = '[project]\nname = "ottla"\nversion = "0"\n[tool.setuptools.packages.find]\nwhere = ["src"]\n'
    (folder / "pyproject.toml").write_text(metadata, encoding="utf-8")
    return setup(folder, **environment)


def setup(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """`setup.py build_ext --inplace`, as `make install` runs it."""
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    # What comes out is not run: the compiler need not think about it.
    environment = os.environ | {"CFLAGS": "-O0"} | environment
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_compiled_module_is_stale_if_its_source_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "src" / "one.py"
    module.parent.mkdir()
    module.write_text("")
    module.with_suffix(".pxd").write_text("")
    note = b"GNU\0" + bytes.fromhex(f"077a{install.digest_of(module)}")
    install.form(module).write_bytes(b"\x7fELF" + bytes(500) + note)
    monkeypatch.setattr(install, "ROOT", tmp_path)
    assert install.stale_forms() == []
    module.with_suffix(".pxd").write_text("cpdef long twice(long n)\n")
    assert install.stale_forms() == [module]
    with pytest.raises(
        pytest.UsageError,
        match="the compiled form of one was built from another version of the source: run `make install`",
    ):
        conftest.reject_stale_modules()
    install.form(module).write_bytes(b"\x7fELF" + bytes(500))
    assert install.stale_forms() == [], "one without our build id is not checked"


@pytest.mark.house
@pytest.mark.skipif(sys.platform != "linux", reason="the build id is a feature of ELF files")
def test_a_build_writes_the_digest_of_the_sources_into_a_compiled_module(tmp_path: Path) -> None:
    built = build(tmp_path)
    assert built.returncode == 0, built.stderr
    module = tmp_path / "src" / "ottla" / "one.py"
    assert install.built_from(module) == install.digest_of(module)


@pytest.mark.house
def test_without_a_compiler_the_build_continues_with_one_message(tmp_path: Path) -> None:
    result = build(tmp_path, CC="no-such-compiler", LDSHARED="no-such-compiler")
    assert result.returncode == 0, result.stderr
    said = result.stdout + result.stderr
    assert said.count("hot loops stay uncompiled") == 1
    assert "install a C compiler and Python's headers, then: pip install" in said
    assert "Traceback" not in result.stderr


@pytest.mark.house
def test_without_a_compiler_the_message_reaches_the_terminal_although_pip_hides_the_build(tmp_path: Path) -> None:
    reader, writer = os.openpty()
    command = "import os, sys; os.close(os.open(os.ttyname(int(sys.argv[1])), os.O_RDWR)); import runpy; runpy.run_path(sys.argv[2])['say']('no cc')"
    shutil.copy(ROOT / "setup.py", tmp_path)
    hidden = tmp_path / "hidden"
    with hidden.open("wb") as log:
        subprocess.run(
            [sys.executable, "-c", command, str(writer), "setup.py"],
            cwd=tmp_path,
            env={name: value for name, value in os.environ.items() if name != "CI"},
            stderr=log,
            pass_fds=[writer],
            start_new_session=True,  # which takes the terminal that it opens first
            check=True,
        )
    assert b"ottla: hot loops stay uncompiled (no cc)" in os.read(reader, 1000)
    os.close(reader)
    os.close(writer)


def test_a_second_build_has_no_modules_that_were_deleted_since_the_first(tmp_path: Path) -> None:
    build(tmp_path, OTTLA_COMPILE="no")
    package, built = tmp_path / "src" / "ottla", tmp_path / "build" / "lib" / "ottla"

    def build_again() -> set[str]:
        command = [sys.executable, "setup.py", "-q", "build", "--build-lib", "build/lib"]
        subprocess.run(command, cwd=tmp_path, env=os.environ | {"OTTLA_COMPILE": "no"}, check=True, capture_output=True)
        return {file.name for file in built.iterdir()}

    assert {"__init__.py", "one.py", "two.py"} <= build_again()
    for name in ("one", "two"):  # as an earlier build with a compiler has left them
        (built / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}").touch()
    (package / "two.py").unlink()
    (package / "two.pxd").unlink()
    assert {name for name in build_again() if name.startswith("two")} == set()
    assert f"one{sysconfig.get_config_var('EXT_SUFFIX')}" in build_again()
    (package / "one.pxd").unlink()
    assert {name for name in build_again() if name.startswith("one")} == {"one.py"}


@pytest.mark.house
def test_without_a_compiler_no_older_compiled_form_is_left(tmp_path: Path) -> None:
    older = tmp_path / "src" / "ottla" / f"one{sysconfig.get_config_var('EXT_SUFFIX')}"
    older.parent.mkdir(parents=True)
    older.touch()
    build(tmp_path, CC="no-such-compiler", LDSHARED="no-such-compiler")
    assert not older.exists()


@pytest.mark.house
def test_a_distributed_wheel_is_compiled_or_not_built(tmp_path: Path) -> None:
    result = build(tmp_path, CC="no-such-compiler", LDSHARED="no-such-compiler", OTTLA_COMPILE="must")
    assert result.returncode != 0
    assert "hot loops stay uncompiled" not in result.stdout + result.stderr


@pytest.mark.house
@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_compiling_is_silent_leaves_no_debug_symbols_and_repeats_only_changed_modules(tmp_path: Path) -> None:
    result = build(tmp_path)
    assert (result.returncode, result.stdout + result.stderr) == (0, "")
    forms = {form.name.partition(".")[0]: form for form in (tmp_path / "src" / "ottla").glob("*.so")}
    assert sorted(forms) == ["_cython", "one", "two"]
    assert [name for name, form in forms.items() if b".debug_info" in form.read_bytes()] == []
    built = {o: o.stat().st_mtime_ns for o in (tmp_path / "build").rglob("*.o")}
    changed = tmp_path / "src" / "ottla" / "two.py"
    changed.write_text(changed.read_text().replace("* 2", "* 3"))
    assert setup(tmp_path).returncode == 0
    assert [o.stem for o, before in built.items() if o.stat().st_mtime_ns != before] == ["two"]


@pytest.mark.house
@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_a_source_distribution_is_compiled_without_cython_unless_its_sources_were_changed(tmp_path: Path) -> None:
    source = unpack_distribution(tmp_path)
    (tmp_path / "Cython").mkdir()
    (tmp_path / "Cython" / "__init__.py").write_text("raise ImportError('there is none')")
    result = setup(source, PYTHONPATH=str(tmp_path), OTTLA_COMPILE="must")
    assert result.returncode == 0, result.stderr
    assert sorted(form.name.partition(".")[0] for form in (source / "src" / "ottla").glob("*.so")) == [
        "_cython",
        "one",
        "two",
    ]
    assert build_backend.get_requires_for_build_wheel() == [build_backend.CYTHON], "a clone has no generated code"
    with contextlib.chdir(source):
        assert build_backend.get_requires_for_build_wheel() == []
        Path("src/ottla/one.pxd").write_text("cpdef int twice(int n)\n")
        assert build_backend.get_requires_for_build_wheel() == [build_backend.CYTHON]
    assert "there is none" in setup(source, PYTHONPATH=str(tmp_path), OTTLA_COMPILE="must").stderr


def unpack_distribution(folder: Path) -> Path:
    """Build a source distribution of a package of two hot loops, and unpack it."""
    package = folder / "package"
    package.mkdir()
    assert build(package, OTTLA_COMPILE="no").returncode == 0
    (package / "MANIFEST.in").write_text("recursive-include src *.pxd\n")
    subprocess.run([sys.executable, "setup.py", "-q", "sdist"], cwd=package, check=True, capture_output=True)
    with tarfile.open(package / "dist" / "ottla-0.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "ottla-0"


@pytest.mark.house
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
def test_several_modules_are_compiled_at_once(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()
    compiler = tmp_path / "cc"  # each waits for another to begin, and then fails
    compiler.write_text(f"""#!/bin/sh
        : > {begun}/$$; n=0
        while [ $(ls {begun} | wc -l) -lt 2 ] && [ $n -lt 200 ]; do sleep 0.1; n=$((n + 1)); done; exit 1
    """)
    compiler.chmod(0o755)
    build(tmp_path, CC=str(compiler))
    assert len(list(begun.iterdir())) >= 2


@pytest.mark.house
def test_compiling_can_be_declined(tmp_path: Path) -> None:
    result = build(tmp_path, OTTLA_COMPILE="no")
    assert (result.returncode, result.stdout + result.stderr) == (0, "")
    assert list((tmp_path / "src").rglob("*.so")) == []


def test_the_oldest_python_is_the_one_that_works(machine: Machine) -> None:
    machine.has("python3.11", "exit 127")
    for newer in ("python3.12", "python3.13"):
        machine.has(newer, "exit 0")
    result = machine.run("oldest.sh", HOME=str(machine.folder))
    assert (result.returncode, result.stdout) == (0, "python3.12\n")


def test_a_python_of_pyenv_is_older_than_one_on_the_path(machine: Machine) -> None:
    machine.has("python3.13", "exit 0")
    kept = machine.folder / ".pyenv" / "versions" / "3.12.9" / "bin"
    kept.mkdir(parents=True)
    shutil.copy(machine.commands / "python3.13", kept / "python3.12")
    result = machine.run("oldest.sh", HOME=str(machine.folder))
    assert result.stdout == f"{kept}/python3.12\n"


def test_without_a_newer_python_no_more_tests_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(newest, "pythons", lambda: [sys.executable])
    newest.main()
    assert "no Python here is newer than" in capsys.readouterr().out


def test_the_newest_python_runs_the_tests_and_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With this Python in place of a newer one, and one of its tests."""
    monkeypatch.setattr(newest, "pythons", lambda: [sys.executable])
    monkeypatch.setattr(newest, "HOME", Path(sys.prefix))
    monkeypatch.setattr(newest, "prepare", lambda python: None)
    monkeypatch.setattr(newest, "version", lambda python: (99, 0))
    monkeypatch.setattr(newest, "TESTS", ("tests/client/runtime/test_backoff.py",))
    monkeypatch.setattr(sys, "argv", ["newest.py", "--numprocesses", "0"])
    with pytest.raises(SystemExit) as ended:
        newest.main()
    assert ended.value.code == 0
    assert f"on Python {newest.version_of(sys.executable)}" in capsys.readouterr().out
