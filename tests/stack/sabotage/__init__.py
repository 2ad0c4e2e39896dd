"""A folder for the path of a process that is to die at a chosen point; see sitecustomize.py."""
