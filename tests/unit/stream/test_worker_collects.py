"""What a worker's garbage collector leaves behind: counted in answers, in a process of its own."""

import subprocess
import sys

LOOKS, ANSWERS, ROWS = 100, 100, 100
"""A look holds its answers until it ends; each answer holds itself, as the driver's futures do."""
AT_MOST = 20
"""The answers of so many looks may be there at once, however many looks there are."""

MOST_ALIVE = f"""
import weakref
from uuid import UUID
from streaming.pipeline.worker_process import collect_seldom

class Answer:
    def __init__(self, begin):
        self.rows = [dict(uid=UUID(int=each)) for each in range(begin, begin + {ROWS})]
        self.on_timeout = self.rows_read
        alive.add(self)

    def rows_read(self):
        return len(self.rows)

alive = weakref.WeakSet()
most = 0
collect_seldom()
for look in range({LOOKS}):
    answers = [Answer({ROWS} * each) for each in range({ANSWERS})]
    most = max(most, len(alive))
print(most)
"""


def test_answers_of_looks_that_have_ended_do_not_pile_up() -> None:
    told = subprocess.run(
        [sys.executable, "-c", MOST_ALIVE], capture_output=True, text=True, check=True
    )
    assert ANSWERS <= int(told.stdout) <= AT_MOST * ANSWERS
