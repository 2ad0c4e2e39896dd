"""A small JVM that reads JMX, which only Java speaks. Py4J starts it and talks to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from reconcilers.words.errors import Misconfigured, Refused, Unreachable

SMALL = ("-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
END_S = 5.0


class Jvm:
    """Starts at once and has to be closed. Raises `Misconfigured` if Java cannot be started."""

    def __init__(self, patience: float) -> None:
        """``patience`` is how long (s) a node may take for one answer."""
        options = [*SMALL, f"-Dsun.rmi.transport.tcp.responseTimeout={patience * 1000:.0f}"]
        try:
            port, token, process = launch_gateway(
                java_path=None,  # that of JAVA_HOME, else that of the PATH
                javaopts=options,
                die_on_exit=True,
                create_new_process_group=True,  # a Ctrl-C is ours alone
                enable_auth=True,
                return_proc=True,
            )
        except (OSError, ValueError, Py4JError) as failed:
            raise Misconfigured(
                f"Java cannot be started to read JMX ({failed}): install Java 17, or set JAVA_HOME"
            ) from failed
        self._process: Popen[bytes] = process
        self.gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True)
        )

    @property
    def java(self) -> Any:
        """Java's packages, as ``jvm.java.javax.management``."""
        return self.gateway.jvm

    def strings(self, *texts: str) -> Any:
        """A Java array of strings."""
        made = self.gateway.new_array(self.gateway.jvm.java.lang.String, len(texts))
        for place, text in enumerate(texts):
            made[place] = text
        return made

    def trust(self, ca: Path) -> Any:
        """Have the JVM trust the authorities of a PEM file alone; a client's socket factory."""
        java, ssl = self.java.java, self.java.javax.net.ssl
        found = java.security.cert.CertificateFactory.getInstance("X.509").generateCertificates(
            java.io.ByteArrayInputStream(ca.read_bytes())
        )
        store = java.security.KeyStore.getInstance("PKCS12")
        store.load(None, None)
        for number, each in enumerate(found):
            store.setCertificateEntry(f"authority {number}", each)
        managers = ssl.TrustManagerFactory.getInstance("PKIX")
        managers.init(store)
        context = ssl.SSLContext.getInstance("TLS")
        context.init(None, managers.getTrustManagers(), None)
        ssl.SSLContext.setDefault(context)  # connections other than the registry's take it
        return self.java.javax.rmi.ssl.SslRMIClientSocketFactory()

    def close(self) -> None:
        """End the JVM."""
        self.gateway.close()
        self._process.kill()
        self._process.wait(END_S)


@contextmanager
def java_errors(doing: str) -> Iterator[None]:
    """Raise Java's errors as `Refused` (a wrong login, no right) or `Unreachable`, in one line."""
    try:
        yield
    except Py4JJavaError as failed:
        said = " ".join(str(failed.java_exception.toString()).split())
        cause = said.rpartition("nested exception is: ")[2][:300]
        if "java.lang.SecurityException" in said:
            raise Refused(f"{doing}: {cause}") from failed
        raise Unreachable(f"{doing}: {cause}") from failed
    except (Py4JNetworkError, OSError) as failed:
        raise Unreachable(f"{doing}: {failed}") from failed
