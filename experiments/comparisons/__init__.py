"""Runs and studies side by side; the verb `compare` shows them.

`groups` says which runs belong together; `comparison` makes the tables; `contrasts` the paired
differences; `figures` and `output` what is left in a folder.
"""
