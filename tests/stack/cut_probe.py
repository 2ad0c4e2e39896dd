"""Run in namespaces of its own: says of each cut what its clients and others see of one server.

    python tests/stack/cut_probe.py FOLDER

Prints JSON: for each kind of cut and its target, what the cut client saw, what another client saw
meanwhile, and what the cut client saw after it was healed.
"""

import json
import subprocess
import sys
from pathlib import Path

from deploy.embedded.layout import Layout
from deploy.embedded.spec import Wanted, decide
from deploy.nemesis import hosts, network, tools
from deploy.nemesis.links import STREAM_GROUP, first_rules

HOST = "127.0.0.2"
CLIENT = f"""
import socket, sys
try:
    with socket.create_connection(("{HOST}", int(sys.argv[1])), timeout=float(sys.argv[2])) as made:
        print(made.recv(2).decode())
except ConnectionRefusedError:
    print("refused")
except TimeoutError:
    print("silence")
"""
SHORT_S, LONG_S = 2, 120
"""Packets that are all dropped are waited for briefly; those that come after all, long."""
ANOTHER = STREAM_GROUP - 1


def seen(group: int, port: int, patience_s: float) -> str:
    """What a client of this group sees."""
    command = [*hosts.in_group(group), sys.executable, "-c", CLIENT, str(port), str(patience_s)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main(folder: Path) -> None:
    spec = decide(Layout(folder), Wanted(tables=("t",), data_centres=(3,)))
    port = spec.ports.cassandra
    for rule in first_rules(spec):
        tools.iptables(*rule)
    answering = f"""
import socket
server = socket.create_server(("{HOST}", {port}), backlog=20)
print("ready", flush=True)
while True:
    made, _ = server.accept()
    made.sendall(b"ok")
    made.close()
"""
    found = {}
    with subprocess.Popen([sys.executable, "-c", answering], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        for choice, injector in network.cuts(spec, [spec.ports.broker, port]):
            if "the stream" in choice.target and HOST in choice.target:
                injector.inject()
                patience_s = LONG_S if "lost" in choice.kind else SHORT_S
                cut = seen(STREAM_GROUP, port, patience_s)
                beside = seen(ANOTHER, port, LONG_S)
                injector.heal()
                healed = seen(STREAM_GROUP, port, LONG_S)
                found[f"{choice.kind}: {choice.target}"] = [cut, beside, healed]
        server.kill()
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
