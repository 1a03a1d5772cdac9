"""A Python environment with PySpark, and the jars of Spark's Kafka connector, downloaded once into .cache/."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".cache"
JDBC = "42.7.4"
DELTA = ("delta-*.jar", "unitycatalog-*.jar")
NEEDED = ("spark-sql-kafka-0-10_*.jar", "kafka-clients-*.jar", "commons-pool2-*.jar")


SPARK = "4.2.0"
"""The newest Spark with a released Kafka connector."""


PACKAGES = (
    f"pyspark=={SPARK}",
    "pyarrow>=17,<27",
    "pandas>=2.2,<3",
    "protobuf>=5.29,<8",
    "click",
    "rich",
    "cramjam",
    "crc32c",
    "msgspec",
    "pydantic",
    "ruamel.yaml",
    "urllib3",
    "psycopg[binary]",
    "deltalake",
    "psutil",
    "fastavro",
    "httpx",
    "jsonschema",
)


def spark_python() -> Path:
    """Return the Python of an environment with that Spark and Ottla's dependencies; create or update it if necessary."""
    home = CACHE / "pyspark-4.2"
    python = home / "bin" / "python"
    done = home / "ready"
    wanted = "\n".join(PACKAGES)
    if not done.exists() or done.read_text(encoding="utf-8") != wanted:
        print(f"setting up pyspark {SPARK} in {home.relative_to(ROOT)}", file=sys.stderr)
        if not python.exists():
            venv.create(home, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        done.write_text(wanted, encoding="utf-8")
    return python


def connector_jars(python: Path) -> list[Path]:
    """Return the connector's jars, and our stub of its authentication helper."""
    home = CACHE / "spark-connector"
    stub = home / "auth-stub.jar"
    if not stub.exists():
        home.mkdir(parents=True, exist_ok=True)
        pom = str(ROOT / "rivals" / "spark-connector.xml")
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={home}", "-DincludeScope=runtime"]
        subprocess.run([tool("mvn"), "-q", "-B", "-f", pom, *copy], check=True, stdout=sys.stderr)
        compile_stub(python, stub)
    return [*(jar for pattern in NEEDED for jar in home.glob(pattern)), stub]


def delta_jars() -> list[Path]:
    """Return the jars of Delta's connector."""
    home = CACHE / "spark-delta"
    if not any(home.glob("delta-spark_*.jar")):
        home.mkdir(parents=True, exist_ok=True)
        pom = str(ROOT / "rivals" / "spark-delta.xml")
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={home}", "-DincludeScope=runtime"]
        subprocess.run([tool("mvn"), "-q", "-B", "-f", pom, *copy], check=True, stdout=sys.stderr)
    return [jar for pattern in DELTA for jar in home.glob(pattern)]


def postgresql_jar() -> Path:
    """Return PostgreSQL's JDBC driver, which Spark's JDBC source and sink need."""
    return jar_of("org.postgresql", "postgresql", JDBC)


def avro_jar() -> Path:
    """Return Spark's module for Avro, with `from_avro`."""
    return jar_of("org.apache.spark", "spark-avro_2.13", SPARK)


def jar_of(group: str, artifact: str, version: str) -> Path:
    """Return a jar of Maven Central; copy it if necessary."""
    jar = CACHE / f"{artifact}-{version}.jar"
    if not jar.exists():
        copy = [f"-Dartifact={group}:{artifact}:{version}", f"-DoutputDirectory={CACHE}"]
        subprocess.run([tool("mvn"), "-q", "-B", "dependency:copy", *copy], check=True, stdout=sys.stderr)
    return jar


def compile_stub(python: Path, jar: Path) -> None:
    """Compile rivals/spark_auth_stub against the Scala and Spark of that pyspark."""
    where = [str(python), "-c", "import pyspark; print(pyspark.__path__[0])"]
    spark = Path(subprocess.run(where, check=True, capture_output=True, text=True).stdout.strip(), "jars")
    classes = jar.parent / "auth-stub"
    sources = sorted((ROOT / "rivals" / "spark_auth_stub").rglob("*.java"))
    compiler = [tool("javac"), "-cp", f"{spark}/*", "-d", str(classes)]
    subprocess.run([*compiler, *map(str, sources)], check=True, stdout=sys.stderr)
    subprocess.run([tool("jar"), "cf", str(jar), "-C", str(classes), "."], check=True)
    shutil.rmtree(classes)


def tool(name: str) -> str:
    """Return the path of a program of the JDK, or of Maven."""
    found = shutil.which(name)
    if found is None:
        raise SystemExit(
            f"{name} is not on the PATH: this benchmark needs a JDK and Maven (make interop installs them)"
        )
    return found
