"""The nemesis: a history of every user write of a run, and a checker of what became of them.

It shares nothing with the product: what it knows of James's tables is written down here.
"""
