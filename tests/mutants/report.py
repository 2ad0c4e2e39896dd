"""What a run found: the table of the parts, the survivors, and why they are left standing."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tests.mutants.changes import Key
from tests.mutants.scope import PARTS, part_of
from tests.mutants.trial import LIVED, Outcome, Result

ACCEPTED = Path(__file__).with_name("accepted.toml")


@dataclass(frozen=True, slots=True)
class Run:
    """One run: ``mutants`` counts all there are, by part."""

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


def table(run: Run, known: Mapping[Key, str]) -> str:
    """The table of the parts, and the survivors, as Markdown."""
    lines = [
        f"{sum(run.mutants.values()):,} mutants, of which {len(run.results)} were tried"
        f" (seed {run.seed}).",
        "",
        "| part | mutants | tried | killed | timed out | survived | % |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for part in PARTS:
        tried = _of(run, part.name)
        outcomes = Counter(result.outcome for result in tried)
        killed, late = outcomes[Outcome.KILLED], outcomes[Outcome.TIMED_OUT]
        share = f"{_share(tried):.1%}" if tried else "–"
        cells = (len(tried), killed, late, len(tried) - killed - late, share)
        title = f"{part.name}, at most {part.bar:.0%}"
        lines.append(
            f"| {title} | {run.mutants.get(part.name, 0):,} | {' | '.join(map(str, cells))} |"
        )
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


def _of(run: Run, part: str) -> list[Result]:
    return [result for result in run.results if part_of(result.file) == part]


def _share(results: Iterable[Result]) -> float:
    outcomes = [result.outcome in LIVED for result in results]
    return sum(outcomes) / len(outcomes) if outcomes else 0.0
