"""Run in namespaces of its own: says of each small disk whether it can be written.

    python tests/stack/disk_probe.py FOLDER

Prints JSON: for each disk what a writer saw before it was filled, while it was full, and after.
"""

import errno
import json
import sys
from pathlib import Path

from deploy.embedded import Stack, Wanted
from deploy.nemesis.disks import disk_of_broker, disk_of_last_node, fill, free, small_disks

BLOCKS = bytes(1 << 20)


def seen(disk: Path, name: str) -> str:
    """What a writer of a new file sees."""
    try:
        (disk / name).write_bytes(BLOCKS)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "written"


def main(folder: Path) -> None:
    stack = Stack(folder, Wanted(tables=("t",), data_centres=(3,)))
    found = {}
    with small_disks(stack):
        for name, disk in (("node", disk_of_last_node(stack)), ("broker", disk_of_broker(stack))):
            told = [seen(disk, "before")]
            fill(disk)
            told.append(seen(disk, "during"))
            free(disk)
            found[name] = [*told, seen(disk, "after")]
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
