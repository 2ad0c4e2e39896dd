"""The wheel, built from the sources, in an environment that has nothing else of the project."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "NOTICE")
PACKAGES = ("reconcilers", "checkpoints", "streaming", "deploy", "tests")
NOBODY = 65534
"""The number of the user `nobody`, whose home does not exist."""
NAMELESS = 2_000_123_456
"""A number without a user, as OpenShift gives one to a container."""
READ_ONLY = 'for each in $1; do mount --bind "$each" "$each"; done; mount -o remount,bind,ro /'
"""Mounts, seen by one command alone."""


def sealed(user: int, *writable: Path) -> tuple[str, ...]:
    """Words before a command: it is of this user, and can write in these folders alone.

    It may read all, because tests lie in a folder of root's.
    """
    mounted = ("unshare", "--mount", "sh", "-euc", f'{READ_ONLY}; shift; exec "$@"', "sh")
    reads = ("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search")
    of_user = ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *reads)
    return (*mounted, " ".join(map(str, writable)), *of_user)


def built(folder: Path) -> Path:
    """The wheel of a copy of the sources: in place, what earlier builds left would get into it."""
    copy, into = folder / "sources", folder / "dist"
    copy.mkdir(parents=True)
    archive = folder / "sources.tar"
    with tarfile.open(archive, "w") as packed:
        for name in (*SOURCES, *PACKAGES):
            packed.add(ROOT / name, name, filter=_source)
    with tarfile.open(archive) as packed:
        packed.extractall(copy, filter="data")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(into), str(copy)], check=True, capture_output=True)
    (wheel,) = into.glob("*.whl")
    return wheel


def _source(each: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in each.name else each


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and with the packages of this one, which it needs."""

    wheel: Path
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site(self) -> Path:
        return Path(sysconfig.get_path("purelib", vars={"base": str(self.folder)}))

    @property
    def reconcile(self) -> Path:
        return self.folder / "bin" / "reconcile"

    def run(
        self, *words: str | Path, prefix: tuple[str, ...] = (), check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """A command in an empty folder, with no variable but the path."""
        empty = self.folder / "empty"
        empty.mkdir(exist_ok=True)
        return subprocess.run(
            [*prefix, *map(str, words)],
            cwd=empty,
            env={"PATH": os.environ["PATH"], **self.environment},
            capture_output=True,
            text=True,
            check=check,
        )


def installed(wheel: Path, folder: Path) -> Installed:
    """Install it. The `.pth` files of this environment, the editable install's, are not read."""
    venv.create(folder, symlinks=True)
    made = Installed(wheel, folder)
    command = [sys.executable, "-m", "pip", "--python", str(folder), "install", "--quiet"]
    subprocess.run([*command, "--no-deps", "--no-index", str(wheel)], check=True)
    here = sysconfig.get_paths()["purelib"]
    (made.site / "packages.pth").write_text(f"{here}\n", encoding="utf-8")
    return made


if __name__ == "__main__":
    target = Path(sys.argv[1])
    with TemporaryDirectory() as there:
        target.mkdir(parents=True, exist_ok=True)
        print(shutil.copy(built(Path(there)), target))
