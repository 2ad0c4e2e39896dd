"""The page of a stream: read-only HTML without a script, which a browser loads again by itself.

Every text is escaped. Whoever reads it may copy commands; nothing on the page carries them out.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from checkpoints.codec import finding_to_json
from reconcilers.declared.family import Family
from reconcilers.rows.finding import Finding, State
from reconcilers.words.iso import iso
from reconcilers.words.key import text_of
from reconcilers.words.waiting import RULES, Wait
from streaming.commands.look.report_html import safe
from streaming.commands.look.report_shown import sides
from streaming.commands.look.status_shown import Status, as_text

EVERY = 30
"""Seconds after which a browser loads the page again."""
BY_STATE = {
    State.STUCK: "reconcile findings --retry",
    State.REPORTED: "reconcile explain",
    State.PARKED: "reconcile findings --retry",
    State.UNDONE: "reconcile findings --release",
}
"""The command for a finding of this state, before its key."""
_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="refresh" content="{every}">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>body{{font:15px/1.45 sans-serif;max-width:64em;margin:2em auto;padding:0 1em;color:#222}}
h1{{font-size:1.3em}} h2{{font-size:1.1em;margin:1.6em 0 .4em}}
.ok{{color:#2a7f3f}} .bad{{color:#b03a2e}}
pre,code{{background:#f5f5f5}} pre{{white-space:pre-wrap;overflow-wrap:anywhere;padding:.7em}}
article{{border-left:3px solid #d9a400;padding-left:.8em;margin:1em 0;overflow-wrap:anywhere}}
article p,article pre{{margin:.2em 0}}</style></head><body>
"""


@dataclass(frozen=True, slots=True)
class OpenFindingView:
    """An open finding and its family."""

    finding: Finding
    family: Family


@dataclass(frozen=True, slots=True)
class PageContent:
    """All that the page shows. ``unready`` says why the process is not ready.

    ``findings`` are some open ones, the newest first.
    """

    title: str
    status: Status
    unready: Sequence[str]
    problems: Sequence[str]
    findings: Sequence[OpenFindingView]
    at: str


def page(content: PageContent) -> str:
    """The page as text."""
    return "".join(_parts(content))


def without_status(title: str, why: str) -> str:
    """The page while the status cannot be read."""
    head = _HEAD.format(title=safe(title), every=EVERY)
    return f'{head}<h1>{safe(title)}</h1>\n<p class="bad">{safe(why)}</p>\n</body></html>\n'


def _parts(content: PageContent) -> Iterator[str]:
    yield _HEAD.format(title=safe(content.title), every=EVERY)
    yield f"<h1>{safe(content.title)}</h1>\n<p>{safe(content.at)}; loaded again every {EVERY} s."
    yield ' Also: <a href="/status">status</a>, <a href="/metrics">metrics</a>.</p>\n'
    wrong = [*(f"not ready: {each}" for each in content.unready), *content.problems]
    if wrong:
        yield from (f'<p class="bad">{safe(each)}</p>\n' for each in wrong)
    else:
        yield '<p class="ok">Ready; nothing is wrong.</p>\n'
    lines = "\n".join(as_text(content.status))
    yield f"<h2>Status</h2>\n<pre>{safe(lines, keep=chr(10))}</pre>\n"
    total = sum(each.open for each in content.status.findings)
    yield f"<h2>Open findings: {len(content.findings)} of {total}</h2>\n"
    for each in content.findings:
        yield from _finding(each)
    yield "</body></html>\n"


def _finding(shown: OpenFindingView) -> Iterator[str]:
    finding = shown.finding
    head = f"{iso(finding.found_at)} {finding.state} {finding.kind} {finding.projection}"
    yield f"<article><p><strong>{safe(head)}</strong></p>\n<p>{safe(finding.told)}</p>\n"
    rows = sides(finding_to_json(finding, shown.family))
    lines = "\n".join(f"{side}: {row}" for side, row in rows)
    yield f"<pre>{safe(lines, keep=chr(10))}</pre>\n"
    yield f"<p>{_ends(finding)}</p></article>\n"


def _ends(finding: Finding) -> str:
    """Who ends its wait, and by which command."""
    rule = None if finding.wait is None else RULES[finding.wait]
    told = "" if rule is None else f"{rule.ends} ends this: "
    return f"{safe(told)}<code>{safe(command_of(finding))}</code>"


def command_of(finding: Finding) -> str:
    """The command that ends the wait of a finding; `reconcile explain` if none does."""
    key = shlex.quote(text_of(finding.slot))
    command = "" if finding.wait is None else RULES[finding.wait].command
    if finding.wait is Wait.COMMAND or (command and "KEY" not in command):
        return command
    if command:
        return command.replace("KEY", key)
    return f"{BY_STATE.get(finding.state, 'reconcile explain')} {key}"
