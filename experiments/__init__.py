"""The room that knows files, clocks and configuration.

The command `sojourn` starts in `command`; every verb is a module: `train`, `compare`, `listing`.
`build` turns configuration into objects, `run` lives and trains, `results` reads a run folder back.
"""

from .tables import read_table as read_table
