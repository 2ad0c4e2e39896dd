"""Prometheus's ``promtool``, which tests the alert rules: ``python -m deploy.promtool`` fetches it.

One on the PATH is preferred. Otherwise it is taken from Debian's package ``prometheus``, which apt
downloads without root; nothing is installed.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from deploy.embedded.jars import JARS

FETCHED = JARS / "promtool"
"""The fetched program; the package's other files are not kept."""
PACKAGE = "prometheus"
LONGEST_S = 300
"""Seconds that a download may take."""


def found(fetched: Path = FETCHED) -> Path | None:
    """The program on the PATH, else the fetched one; None without either."""
    installed = shutil.which("promtool")
    if installed is not None:
        return Path(installed)
    return fetched if fetched.exists() else None


def fetch(fetched: Path = FETCHED) -> str | None:
    """Download the package and keep its program. Returns why it could not, None if it is there."""
    fetched.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="promtool-", dir=fetched.parent) as folder:
        try:
            _run(["apt-get", "download", PACKAGE], folder)
            (package,) = Path(folder).glob(f"{PACKAGE}_*.deb")
            _run(["dpkg-deb", "-x", package.name, "package"], folder)
            (Path(folder) / "package" / "usr" / "bin" / "promtool").replace(fetched)
        except subprocess.CalledProcessError as failed:
            return str(failed.stderr or failed).strip().splitlines()[-1]
        except (OSError, ValueError, subprocess.TimeoutExpired) as failed:
            return str(failed)
    return None


def _run(command: list[str], folder: str) -> None:
    subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True, timeout=LONGEST_S
    )


if __name__ == "__main__":
    why = None if found() else fetch()
    print(f"promtool: {found() or f'not fetched, so no test of alert rules runs: {why}'}")
