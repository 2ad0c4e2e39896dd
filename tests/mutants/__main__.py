"""`make mutants`: plants faults in a copy of the project and runs the fast tests against each."""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mutants import reach, report
from tests.mutants.changes import Mutant, mutants_of
from tests.mutants.report import Key, Result, Run
from tests.mutants.scope import PARTS, TESTS, files_of, left_out
from tests.mutants.session import warm_up
from tests.mutants.trial import Trial, Trials

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "mutants"
LAST, TABLE = KEPT / "last.json", KEPT / "table.md"
PAGE = ROOT / "docs" / "mutants.md"
SAMPLE, SEED = 400, 10

Planted = tuple[Mutant, ast.Module]


def main() -> int:
    """Try a sample. Returns 1 when a part is over its bar, 2 when the tests break off."""
    chosen = _arguments().parse_args()
    if chosen.page:
        _write_page(_last())
        return 0
    os.nice(chosen.nice)
    planted = list(_planted(chosen.only))
    sample = _sampled(planted, chosen)
    mutants = {mutant.file: 0 for mutant, _ in planted}
    for mutant, _ in planted:
        mutants[mutant.file] += 1
    print(f"{len(planted)} mutants, {len(sample)} to be tried", flush=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        try:
            run = Run(chosen.seed, mutants, list(_tried(sample, Path(folder), chosen)))
        except reach.BrokenOff as broken:
            print(broken, file=sys.stderr)
            return 2
    if chosen.again:
        run = _last().tried_again(run)
    LAST.write_text(run.to_json(), encoding="utf-8")
    TABLE.write_text(report.page(run, report.reasons()), encoding="utf-8")
    print(TABLE.read_text(encoding="utf-8"))
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
    parser.add_argument("--nice", type=int, default=10, help="gives way to other work (10)")
    parser.add_argument(
        "--again", action="store_true", help="only what survived the last run, which is updated"
    )
    parser.add_argument(
        "--page", action="store_true", help="instead: write the last run into docs/mutants.md"
    )
    return parser


def _planted(only: str) -> Iterator[Planted]:
    """Every mutant in scope, with the tree that it is part of."""
    for part in PARTS:
        for file in files_of(part, ROOT):
            if not file.startswith(only):
                continue
            tree = ast.parse((ROOT / file).read_text(encoding="utf-8"), filename=file)
            for mutant in mutants_of(file, tree):
                if not left_out(part, file, mutant.function):
                    yield mutant, tree


def _sampled(planted: Sequence[Planted], chosen: argparse.Namespace) -> list[Planted]:
    if chosen.again:
        lived = {each.key for each in _last().lived()}
        files = {file for file, *_ in lived}
        return [each for each in planted if each[0].file in files and _key(*each) in lived]
    if not 0 < chosen.sample < len(planted):
        return list(planted)
    picked = random.Random(chosen.seed).sample(range(len(planted)), chosen.sample)
    return [planted[at] for at in sorted(picked)]


def _last() -> Run:
    return Run.from_json(LAST.read_text(encoding="utf-8"))


def _key(mutant: Mutant, tree: ast.Module) -> Key:
    return (mutant.file, mutant.function, *report.shortened(*mutant.diff(tree)))


def _tried(sample: list[Planted], folder: Path, chosen: argparse.Namespace) -> Iterator[Result]:
    tree = _copied(folder / "tree")
    warm_up()
    files = sorted({file for part in PARTS for file in files_of(part, tree)})
    measured = KEPT / f"measured-{_digest(tree, chosen.tests)}.json"
    if not measured.exists():
        print("measuring which tests reach what", flush=True)
        KEPT.mkdir(parents=True, exist_ok=True)
        reach.measure(tree, files, chosen.tests, measured)
    reached = reach.reach_from(measured, tree)
    for test in sorted(reached.failed):
        print(f"fails without any fault, left out: {test}")
    trials = Trials(tree, reached, chosen.jobs)
    trees = dict(sample)
    began = time.monotonic()
    for done, trial in enumerate(trials.run(sample), start=1):
        result = _result(trial, trees[trial.mutant])
        if result.outcome in report.LIVED:
            print(f"{result.file}:{result.line} {result.function} {result.outcome}")
            print(f"    - {result.was}\n    + {result.becomes}", flush=True)
        if done % 50 == 0:
            spent = time.monotonic() - began
            print(f"… {done} of {len(sample)} in {spent:.0f} s", flush=True)
        yield result


def _result(trial: Trial, tree: ast.Module) -> Result:
    mutant = trial.mutant
    was, becomes = report.shortened(*mutant.diff(tree))
    return Result(
        file=mutant.file,
        function=mutant.function,
        line=mutant.line,
        operator=mutant.operator,
        was=was,
        becomes=becomes,
        outcome=trial.outcome,
        killer=trial.killer,
    )


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


def _write_page(run: Run) -> None:
    written = report.page(run, report.reasons())
    PAGE.write_text(report.rewritten(PAGE.read_text(encoding="utf-8"), written), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
