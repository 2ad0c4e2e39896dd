"""The report as one HTML file: no script, nothing from the internet, plots as inline SVG.

Every text is escaped, also those of the program itself. The file forbids scripts and requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from reconcilers.rows.summary import OUTCOMES
from streaming.commands.look.report_shown import PeriodReport, one_line, sections

COLOURS = ("#2a7f3f", "#d9a400", "#3b6fb6", "#b03a2e")
"""Of `OUTCOMES`, in their order."""
WIDTH, HEIGHT, LEFT, BELOW = 760, 220, 60, 40

_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>body{{font:15px/1.45 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}}
h1{{font-size:1.3em}} h2{{font-size:1.1em;margin:1.6em 0 .4em}}
pre{{white-space:pre-wrap;overflow-wrap:anywhere;background:#f5f5f5;padding:.7em;margin:0}}
svg text{{font:12px sans-serif;fill:#333}}</style></head><body>
"""


def as_html(report: PeriodReport) -> str:
    """The whole file as text."""
    return "".join(_parts(report))


def _parts(report: PeriodReport) -> Iterator[str]:
    (head, notes), *rest = sections(report)
    yield _HEAD.format(title=safe(f"reconcile report: {report.keyspace}"))
    yield f"<h1>{safe(head)}</h1>\n"
    yield from (f"<p><strong>{safe(note)}</strong></p>\n" for note in notes)
    yield "<h2>Findings by day</h2>\n"
    yield bars(_by_day(report), OUTCOMES)
    if report.repairs:
        yield "<h2>Seconds to repair (p50, p99)</h2>\n"
        yield bars(_times(report), ("seconds",))
    for title, lines in rest:
        yield f"<h2>{safe(title)}</h2>\n<pre>{safe(chr(10).join(lines), keep=chr(10))}</pre>\n"
    yield "</body></html>\n"


def safe(text: str, keep: str = "") -> str:
    """A text for HTML, also within an attribute's quotes; control characters are shown."""
    return keep.join(escape(one_line(each)) for each in (text.split(keep) if keep else [text]))


def _by_day(report: PeriodReport) -> dict[str, dict[str, float]]:
    days: dict[str, dict[str, float]] = {}
    for each in report.days:
        days.setdefault(each.day, {})[each.outcome] = each.findings
    return days


def _times(report: PeriodReport) -> dict[str, dict[str, float]]:
    times: dict[str, dict[str, float]] = {}
    for each in report.repairs:
        times[f"{each.system} p50"] = {"seconds": each.p50}
        times[f"{each.system} p99"] = {"seconds": each.p99}
    return times


def bars(stacks: Mapping[str, Mapping[str, float]], parts: Sequence[str]) -> str:
    """Stacked bars as SVG, one for each name; ``parts`` are stacked in their order."""
    if not stacks:
        return "<p>none</p>\n"
    top = max(sum(each.values()) for each in stacks.values()) or 1
    wide = (WIDTH - LEFT) / len(stacks)
    drawn = [
        f'<text x="0" y="14">{top:g}</text><text x="0" y="{HEIGHT}">0</text>',
        *_legend(parts),
    ]
    for number, (name, values) in enumerate(stacks.items()):
        left, bottom = LEFT + number * wide, float(HEIGHT)
        for part, colour in zip(parts, COLOURS, strict=False):
            high = values.get(part, 0) / top * (HEIGHT - 10)
            bottom -= high
            told = safe(f"{name}: {part} {values.get(part, 0):g}")
            drawn.append(
                f'<rect x="{left:.1f}" y="{bottom:.1f}" width="{wide * 0.8:.1f}"'
                f' height="{high:.1f}" fill="{colour}"><title>{told}</title></rect>'
            )
        if number % max(1, len(stacks) // 8) == 0:
            drawn.append(f'<text x="{left:.1f}" y="{HEIGHT + 16}">{safe(name)}</text>')
    return (
        f'<svg role="img" width="100%" viewBox="0 0 {WIDTH} {HEIGHT + BELOW + 10}">'
        f"{''.join(drawn)}</svg>\n"
    )


def _legend(parts: Sequence[str]) -> Iterator[str]:
    for number, (part, colour) in enumerate(zip(parts, COLOURS, strict=False)):
        left, top = LEFT + number * 170, HEIGHT + 28
        yield f'<rect x="{left}" y="{top}" width="10" height="10" fill="{colour}"/>'
        yield f'<text x="{left + 15}" y="{top + 10}">{safe(part)}</text>'
