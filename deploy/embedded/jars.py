"""The Java parts, copied by Maven into `.jars/<set>/`, and the Java to run them with."""

import hashlib
import logging
import os
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

from deploy.embedded.errors import FetchError, MissingToolError
from deploy.embedded.process import exclusive

log = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parents[2]
POM = ROOT / "deploy" / "maven" / "pom.xml"
JARS = ROOT / ".jars"
SETS = (
    "cassandra-5.0",
    "cassandra-4.1",
    "agent-5",
    "agent-4",
    "agent-metrics",
    "kafka",
    "spark",
)
STAMP = ".pom.sha256"
JAVA_MAJOR = 17
UNVERIFIED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
"""For every server here: its classes come from checked jars, and verifying them takes seconds."""
LIGHT_COMPILER = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=128m")
"""For servers of minutes, where compiling well does not pay: halves the processor time of a start.

Without tiers Java would keep 48 MiB of compiled code, which some minutes fill: it would compile no
more.
"""


def java() -> str:
    """The path of Java 17: that of JAVA_HOME, or the one on the PATH. Raises MissingToolError."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise MissingToolError("Java 17 is not installed: install a JRE 17 or set JAVA_HOME")
    shown = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', shown)
    if version is None or int(version[1]) != JAVA_MAJOR:
        raise MissingToolError(
            f"{found} is Java {version[1] if version else '?'}, needed is 17: set JAVA_HOME to it"
        )
    return found


def folder(name: str) -> Path:
    """The folder of one set of jars. Raises FetchError where it was not fetched.

    A set that the pom now says otherwise of will do: a running stack goes on with what it has.
    """
    place = JARS / name
    if not (place / STAMP).exists():
        raise FetchError(f"jars of {name} are missing: run python -m deploy.embedded jars")
    return place


def fetch(names: tuple[str, ...] = SETS) -> list[Path]:
    """Copy each set that is missing or differs from the pom; return the folders of all.

    Raises MissingToolError without Maven or Java 17, FetchError when Maven fails.
    """
    with exclusive(JARS / ".lock"):
        missing = [name for name in names if not _is_fresh(JARS / name)]
        if missing:
            java()
            maven = shutil.which("mvn")
            if maven is None:
                raise MissingToolError(
                    "Maven is not installed: install it, so that mvn is on the PATH"
                )
            for name in missing:
                _copy(maven, name)
    return [JARS / name for name in names]


def _is_fresh(place: Path) -> bool:
    stamp = place / STAMP
    return stamp.exists() and stamp.read_text(encoding="ascii") == fingerprint(place.name)


def fingerprint(name: str, pom: Path = POM) -> str:
    """A hash of what the pom says of one set: its profile, with the properties filled in.

    A change of one set leaves the others as they are: servers may be running from them.
    """
    tree = ElementTree.parse(pom).getroot()
    space = {"m": "http://maven.apache.org/POM/4.0.0"}
    properties = tree.find("m:properties", space)
    versions = {p.tag.rpartition("}")[2]: p.text or "" for p in properties or ()}
    for profile in tree.iterfind("m:profiles/m:profile", space):
        if profile.findtext("m:id", namespaces=space) == name:
            text = " ".join("".join(profile.itertext()).split())
            filled = re.sub(r"\$\{([^}]+)\}", lambda m: versions.get(m[1], m[0]), text)
            return hashlib.sha256(filled.encode()).hexdigest()
    raise FetchError(f"{pom} has no profile {name}")


def _copy(maven: str, name: str) -> None:
    log.info("fetching the jars of %s", name)
    fresh = JARS / f".{name}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    command = [maven, "-B", "-q", "-f", str(POM), "-P", name]
    command += ["dependency:copy-dependencies", f"-DoutputDirectory={fresh}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not any(fresh.glob("*.jar")):
        errors = [line for line in done.stdout.splitlines() if "ERROR" in line] or ["no message"]
        raise FetchError(f"Maven could not copy the jars of {name}: {errors[0][:400]}")
    (fresh / STAMP).write_text(fingerprint(name), encoding="ascii")
    shutil.rmtree(JARS / name, ignore_errors=True)
    fresh.rename(JARS / name)
