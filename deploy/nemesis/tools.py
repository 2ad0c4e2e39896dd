"""Programs that faults need, from Debian's packages, unpacked below the jar folder: not installed.

`iptables` cuts connections, libfaketime changes the clock of a process.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from deploy.embedded.errors import FetchError, MissingToolError
from deploy.embedded.jars import JARS
from deploy.embedded.process import exclusive

PACKAGES = (
    "iptables",
    "libip4tc2",
    "libip6tc2",
    "libxtables12",
    "libnetfilter-conntrack3",
    "libnfnetlink0",
    "libmnl0",
    "libfaketime",
)
FOLDER = JARS / "debian"
NEEDED = ("apt-get", "dpkg-deb", "unshare", "ip", "setpriv", "mount", "umount")


def fetch(folder: Path = FOLDER) -> None:
    """Download and unpack the packages unless they are there.

    Raises MissingToolError where this is not root's process or no Debian, FetchError where a
    package cannot be had.
    """
    if os.geteuid() != 0:
        raise MissingToolError("cuts of connections need root: run it as root")
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        raise MissingToolError(f"{', '.join(missing)} not found: run it on Debian or Ubuntu")
    with exclusive(JARS / ".debian.lock"):
        if not folder.exists():
            _unpack_all(folder)


def _unpack_all(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".debian-") as scratch:
        fresh = Path(scratch) / "root"
        _run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *PACKAGES], scratch)
        for package in sorted(Path(scratch).glob("*.deb")):
            _run(["dpkg-deb", "-x", str(package), str(fresh)], scratch)
        fresh.rename(folder)


def _run(command: list[str], folder: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip() or "no message").splitlines()[-1]
        raise FetchError(f"{command[0]} could not fetch {', '.join(PACKAGES)}: {said[:300]}")


def faketime(folder: Path = FOLDER) -> Path:
    """The library that shifts the clock of a process which has it preloaded."""
    [library] = folder.glob("usr/lib/*-linux-gnu/faketime/libfaketime.so.1")
    return library


def iptables(*arguments: str, folder: Path = FOLDER) -> None:
    """Run iptables in the network namespace of this process. Raises MissingToolError."""
    [libraries] = folder.glob("usr/lib/*-linux-gnu")
    places = {
        "LD_LIBRARY_PATH": str(libraries),
        "XTABLES_LIBDIR": str(libraries / "xtables"),
    }
    command = [str(folder / "usr/sbin/xtables-legacy-multi"), "iptables", "-w", *arguments]
    done = subprocess.run(
        command, env={**os.environ, **places}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = (done.stderr.strip() or "no message").splitlines()[0]
        raise MissingToolError(f"iptables {' '.join(arguments)}: {said[:200]}")
