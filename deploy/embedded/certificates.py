"""A certificate authority of the stack's own, and what it has signed, as PEM files.

Each stack makes its own below its data directory; nothing else trusts it. openssl makes all but the
trust store of the agent's driver, which is keytool's.
"""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.embedded.errors import MissingToolError, StartError

DAYS = "30"
STORE_PASSWORD = "embedded"
"""Of the two stores that the agent's driver reads; PEM files have none."""
SERVERS = ("DNS:localhost", *(f"IP:127.0.0.{number}" for number in range(1, 10)))
"""The names in the servers' certificate."""
CLIENTS = ("admin", "agent", "reconciler")
"""Who has a certificate: the common name is the name of a user of Kafka's, as `User:CN=admin`."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """The certificates and keys of one stack, in one folder that only its owner reads."""

    folder: Path

    @property
    def ca(self) -> Path:
        """The certificate of the authority: what servers and clients trust."""
        return self.folder / "ca.pem"

    def certificate(self, name: str) -> Path:
        """A certificate, PEM."""
        return self.folder / f"{name}.pem"

    def key(self, name: str) -> Path:
        """The key of a certificate: PKCS 8, PEM, without a password."""
        return self.folder / f"{name}.key"

    def both(self, name: str) -> Path:
        """Key and certificate in one file, PEM: what Java's servers take as a key store."""
        return self.folder / f"{name}.both.pem"

    def key_store(self, name: str) -> Path:
        """The same as PKCS 12, for a client that takes no PEM."""
        return self.folder / f"{name}.p12"

    @property
    def trust_store(self) -> Path:
        """The authority's certificate as PKCS 12, for a client that takes no PEM."""
        return self.folder / "ca.p12"

    def make(self) -> None:
        """Make what is not there. Raises MissingToolError, StartError."""
        if not self.ca.exists():
            self.make_authority()
        for name, alternatives in (("server", SERVERS), *((each, ()) for each in CLIENTS)):
            if not self.certificate(name).exists():
                self.sign(name, alternatives)
        if not self.trust_store.exists():
            self._make_stores("agent")

    def renew(self) -> None:
        """Make all anew, by a new authority: nothing that the old one signed is valid any more."""
        for each in self.folder.glob("*.pem"):
            each.unlink()
        self.make()

    def make_authority(self) -> None:
        """Make the authority, a new one if there is one. Raises MissingToolError, StartError."""
        subject = ["-subj", "/CN=embedded authority", "-days", DAYS]
        usage = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]
        new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        files = ["-keyout", str(self.key("ca")), "-out", str(self.ca)]
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _run("openssl", "req", "-x509", *new_key, *subject, *usage, *files)
        self.trust_store.unlink(missing_ok=True)

    def sign(self, name: str, alternatives: Sequence[str] = (), days: str = DAYS) -> None:
        """Make a key and a certificate of this common name, in place of those that are there.

        ``alternatives`` are the host names and addresses that it is for, as openssl writes them;
        with negative ``days`` it has expired. Raises MissingToolError, StartError.
        """
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        files = ["-keyout", str(self.key(name)), "-out", str(request)]
        _run("openssl", "req", "-new", *new_key, "-subj", f"/CN={name}", *files)
        lines = ["extendedKeyUsage = serverAuth, clientAuth"]
        lines += [f"subjectAltName = {', '.join(alternatives)}"] if alternatives else []
        extensions.write_text("\n".join(lines) + "\n", encoding="utf-8")
        by = ["-CA", str(self.ca), "-CAkey", str(self.key("ca")), "-extfile", str(extensions)]
        out = ["-in", str(request), "-out", str(self.certificate(name)), "-days", days]
        _run("openssl", "x509", "-req", *by, *out)
        key, certificate = (each.read_text() for each in (self.key(name), self.certificate(name)))
        self.both(name).touch(mode=0o600)
        self.both(name).write_text(key + certificate, encoding="ascii")

    def _make_stores(self, name: str) -> None:
        store = ["-keystore", str(self.trust_store), "-storetype", "PKCS12"]
        given = ["-storepass", STORE_PASSWORD, "-noprompt", "-alias", "ca"]
        _run("keytool", "-importcert", *store, *given, "-file", str(self.ca))
        self.export(name)

    def export(self, name: str) -> None:
        """Make a certificate's `key_store`. Raises MissingToolError, StartError."""
        given = ["-in", str(self.both(name)), "-passout", f"pass:{STORE_PASSWORD}"]
        _run("openssl", "pkcs12", "-export", *given, "-out", str(self.key_store(name)))


def _run(tool: str, *arguments: str) -> None:
    """Raises MissingToolError, StartError."""
    if shutil.which(tool) is None:
        raise MissingToolError(f"{tool} is not installed: a secure stack needs it")
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise StartError(f"{tool} {arguments[0]}: {said[:300]}")
