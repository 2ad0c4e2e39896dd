"""What a run found: the table by folder, the survivors, and why they are left standing."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath

from tests.mutants.scope import PARTS
from tests.mutants.trial import Outcome

ACCEPTED = Path(__file__).with_name("accepted.toml")
LIVED = frozenset({Outcome.SURVIVED, Outcome.UNREACHED})
BEGIN, END = "<!-- begin: written by make mutants -->", "<!-- end -->"
SHOWN = 100
CONTEXT = 30

Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Result:
    """One mutant that was tried: ``was`` became ``becomes`` in this function, and its outcome."""

    file: str
    function: str
    line: int
    operator: str
    was: str
    becomes: str
    outcome: Outcome
    killer: str

    @property
    def key(self) -> Key:
        """What stays the same when lines move."""
        return self.file, self.function, self.was, self.becomes


@dataclass(frozen=True, slots=True)
class Run:
    """One run: ``mutants`` counts all there are, by file."""

    seed: int
    mutants: Mapping[str, int]
    results: Sequence[Result]

    def lived(self) -> list[Result]:
        """Those that no test noticed, in the order of files and lines."""
        found = [result for result in self.results if result.outcome in LIVED]
        return sorted(found, key=lambda result: (result.file, result.line, result.becomes))

    def tried_again(self, again: Run) -> Run:
        """This run, with another one of those that lived in their place."""
        killed = [result for result in self.results if result.outcome not in LIVED]
        return replace(self, results=[*killed, *again.results])

    def to_json(self) -> str:
        """As it is kept beside the table."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Run:
        """As it was kept."""
        kept = json.loads(text)
        results = [
            Result(**{**result, "outcome": Outcome(result["outcome"])})
            for result in kept["results"]
        ]
        return cls(kept["seed"], kept["mutants"], results)


def shortened(was: str, becomes: str) -> tuple[str, str]:
    """Two long lines, cut to what differs and a little around it."""
    if max(len(was), len(becomes)) <= SHOWN:
        return was, becomes
    shorter = min(len(was), len(becomes))
    same = next((at for at in range(shorter) if was[at] != becomes[at]), shorter)
    left = shorter - same
    alike = next((at for at in range(left) if was[-1 - at] != becomes[-1 - at]), left)
    start, end = max(same - CONTEXT, 0), max(alike - CONTEXT, 0)
    return _cut(was, start, end), _cut(becomes, start, end)


def _cut(text: str, start: int, end: int) -> str:
    kept = text[start : len(text) - end]
    kept = kept if len(kept) <= 3 * SHOWN else f"{kept[:SHOWN]} … {kept[-SHOWN:]}"
    return f"{'… ' if start else ''}{kept}{' …' if end else ''}"


def reasons() -> dict[Key, str]:
    """Why a survivor is left standing, by what does not change when lines move."""
    kept = tomllib.loads(ACCEPTED.read_text(encoding="utf-8")).get("accepted", [])
    return {
        (each["file"], each["function"], each["was"], each["becomes"]): each["why"] for each in kept
    }


def over_the_bar(run: Run) -> list[str]:
    """The parts of which too many mutants live."""
    return [
        f"{part.name}: {share:.1%} survive, at most {part.bar:.0%} may"
        for part in PARTS
        if (share := _share(_of(run, part.name))) > part.bar
    ]


def page(run: Run, known: Mapping[Key, str]) -> str:
    """The table and the survivors, as docs/mutants.md has them."""
    lines = [
        f"{sum(run.mutants.values()):,} mutants, of which {len(run.results)} were tried"
        f" (seed {run.seed}).",
        "",
        "| folder | mutants | tried | killed | timed out | survived | % |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for part in PARTS:
        files = [file for file in run.mutants if _in(file, part.name)]
        folders = sorted({_folder(file) for file in files})
        if len(folders) > 1:
            for folder in folders:
                here = {file for file in files if _folder(file) == folder}
                lines.append(_row(run, folder, here))
        lines.append(_row(run, f"**{part.name}**, at most {part.bar:.0%}", set(files)))
    lines += ["", *_survivors(run, known)]
    return "\n".join(lines) + "\n"


def _survivors(run: Run, known: Mapping[Key, str]) -> Iterator[str]:
    lived = run.lived()
    if not lived:
        yield "None survived."
        return
    yield "Survivors, each with the reason why it is left standing:"
    yield ""
    for result in lived:
        unreached = " (no test reaches it)" if result.outcome is Outcome.UNREACHED else ""
        yield f"`{result.file}:{result.line}` `{result.function or 'module'}`{unreached}"
        yield "```diff"
        yield f"- {result.was}"
        yield f"+ {result.becomes}"
        yield "```"
        yield known.get(result.key, "**Not explained yet.**")
        yield ""


def rewritten(document: str, written: str) -> str:
    """The document with the part between its marks replaced."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{written}{END}{after}"


def _row(run: Run, title: str, files: set[str]) -> str:
    tried = [result for result in run.results if result.file in files]
    outcomes = Counter(result.outcome for result in tried)
    lived = sum(outcomes[outcome] for outcome in LIVED)
    share = f"{_share(tried):.1%}" if tried else "–"
    killed, late = outcomes[Outcome.KILLED], outcomes[Outcome.TIMED_OUT]
    mutants = sum(run.mutants[file] for file in files)
    cells = (title, f"{mutants:,}", len(tried), killed, late, lived, share)
    return f"| {' | '.join(map(str, cells))} |"


def _folder(file: str) -> str:
    return PurePosixPath(file).parent.as_posix()


def _in(file: str, part: str) -> bool:
    return file.startswith(f"{part}/")


def _of(run: Run, part: str) -> list[Result]:
    return [result for result in run.results if _in(result.file, part)]


def _share(results: Iterable[Result]) -> float:
    outcomes = [result.outcome in LIVED for result in results]
    return sum(outcomes) / len(outcomes) if outcomes else 0.0
