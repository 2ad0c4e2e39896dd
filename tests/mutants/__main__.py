"""`make mutants`: plants faults in a copy of the project and runs the fast tests against each."""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mutants import reach, report
from tests.mutants.changes import Mutant, mutants_of
from tests.mutants.reach import Reach
from tests.mutants.report import Run
from tests.mutants.scope import PARTS, TESTS, files_of, left_out, part_of
from tests.mutants.session import BrokenOff, warm_up
from tests.mutants.trial import LIVED, Result, Trials

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "mutants"
LAST, TABLE = KEPT / "last.json", KEPT / "table.md"
SAMPLE, SEED, NICE = 400, 10, 10


def main() -> int:
    """Try a sample. Returns 1 when a part is over its bar, 2 when the tests break off."""
    chosen = _arguments().parse_args()
    os.nice(NICE)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # so that the children are ended too
    planted = list(_planted(chosen.only))
    sample = _sampled(planted, chosen)
    print(f"{len(planted)} mutants, {len(sample)} to be tried", flush=True)
    try:
        results = list(_tried(sample, chosen))
    except BrokenOff as broken:
        print(broken, file=sys.stderr)
        return 2
    run = Run(chosen.seed, dict(Counter(part_of(mutant.place.file) for mutant in planted)), results)
    if chosen.again:
        run = _last().tried_again(run)
    written = report.table(run, report.reasons())
    LAST.write_text(run.to_json(), encoding="utf-8")
    TABLE.write_text(written, encoding="utf-8")
    print(written)
    too_many = report.over_the_bar(run)
    print("\n".join(too_many) or "every part is within its bar", file=sys.stderr)
    return int(bool(too_many))


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make mutants ARGS=…", description=__doc__)
    parser.add_argument("--sample", type=int, default=SAMPLE, help="how many; 0: all (400)")
    parser.add_argument("--seed", type=int, default=SEED, help="which ones (10)")
    parser.add_argument(
        "--only", default="", metavar="PATH", help="a folder or file of the product"
    )
    parser.add_argument("--tests", nargs="+", default=TESTS, metavar="PATH", help="fewer tests")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time (cores)")
    parser.add_argument(
        "--again", action="store_true", help="only what survived the last run, which is updated"
    )
    return parser


def _planted(only: str) -> Iterator[Mutant]:
    """Every mutant in scope."""
    for part in PARTS:
        for file in files_of(part, ROOT):
            if file.startswith(only):
                tree = ast.parse((ROOT / file).read_text(encoding="utf-8"), filename=file)
                for mutant in mutants_of(file, tree):
                    if not left_out(part, file, mutant.place.function):
                        yield mutant


def _sampled(planted: Sequence[Mutant], chosen: argparse.Namespace) -> list[Mutant]:
    if chosen.again:
        lived = {each.key for each in _last().lived()}
        files = {file for file, *_ in lived}
        return [each for each in planted if each.place.file in files and each.key() in lived]
    if not 0 < chosen.sample < len(planted):
        return list(planted)
    picked = random.Random(chosen.seed).sample(range(len(planted)), chosen.sample)
    return [planted[at] for at in sorted(picked)]


def _last() -> Run:
    return Run.from_json(LAST.read_text(encoding="utf-8"))


def _tried(sample: Sequence[Mutant], chosen: argparse.Namespace) -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = _copied(Path(folder) / "tree")
        trials = Trials(tree, _reach(tree, chosen.tests), chosen.jobs)
        began = time.monotonic()
        for done, result in enumerate(trials.run(sample), start=1):
            if result.outcome in LIVED:
                print(f"{result.file}:{result.line} {result.function} {result.outcome}")
                print(f"    - {result.was}\n    + {result.becomes}", flush=True)
            if done % 50 == 0:
                spent = time.monotonic() - began
                print(f"… {done} of {len(sample)} in {spent:.0f} s", flush=True)
            yield result


def _reach(tree: Path, tests: Sequence[str]) -> Reach:
    """Which test reaches what: measured, if it was not for the same files."""
    warm_up()
    measured = KEPT / f"measured-{_digest(tree, tests)}.json"
    if not measured.exists():
        print("measuring which tests reach what", flush=True)
        KEPT.mkdir(parents=True, exist_ok=True)
        files = sorted({file for part in PARTS for file in files_of(part, tree)})
        reach.measure(tree, files, tests, measured)
    reached = reach.reach_from(measured, tree)
    for test in sorted(reached.failed):
        print(f"fails without any fault, left out: {test}")
    return reached


def _copied(into: Path) -> Path:
    """The project as it stands, what is not committed too: faults are planted in a copy only."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, into / name)
    for name in (".venv", ".jars"):
        if (ROOT / name).exists():
            (into / name).symlink_to((ROOT / name).resolve())
    return into


def _digest(tree: Path, tests: Sequence[str]) -> str:
    """Of all Python files, and of the tests asked for: a measured run is used again for these."""
    digest = hashlib.sha256(repr(tuple(tests)).encode())
    for path in sorted(tree.rglob("*.py")):
        if not {".venv", "mutants"} & set(path.relative_to(tree).parts):
            digest.update(path.relative_to(tree).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
