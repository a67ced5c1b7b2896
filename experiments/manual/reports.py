"""What `sojourn compare --help` and `sojourn record --help` print."""

from __future__ import annotations

COMPARE = """sojourn compare RUN|STUDY ... [key=value ...]

Compare finished runs: a page for the browser, regret curves with bands over seeds, tables.

  sojourn compare 'runs/bandit/*'
  sojourn compare runs/studies/bandit reference=gru declared=delta_net,titans

  RUN         a run folder, a folder of runs, a study, a pattern such as 'runs/bandit/*', or latest
  output      folder for report.html, figures, their data and tables; default
              runs/comparisons/TIME
  last        part of a run that counts as its end: a fraction of its steps or a number of episodes;
              default 0.1
  unfinished  runs that failed or did not reach the end of their budget: refuse, include (those
              that did not fail) or skip (all of them, and say which); default refuse
  mix_backends  true: runs in EnvPool beside runs in Python, which play other layouts; default false
  reference   the group that all others are paired with, a label or a memory; default the group of
              the GRU where there is one
  declared    groups whose difference was to be tested: a list or all; Holm's adjustment is over
              these only. Separate labels that have commas by ; default none
"""
RECORD = """sojourn record RUN [key=value ...]

Live one held-out lifetime and save it as a GIF or MP4, with task, episode, return, regret so far
and the norm of the memory. Needs no screen. Nothing of the run is changed.

  sojourn record latest
  sojourn record RUN checkpoint=untrained,last steps=400     before and after, side by side

  RUN         a run folder (its newest checkpoint), a checkpoint file, latest or best
  lifetime    which lifetime; default 0
  steps       steps of it; default 200
  checkpoint  last, first (the oldest that is kept), untrained or a checkpoint file; several by
              commas live the same lifetime with the same luck, side by side; default last
  seed        root seed of the held-out stream; default that of sojourn evaluate
  greedy      true: the most likely action instead of a sampled one; default false
  fps         frames a second; default 8
  output      the file, .gif or .mp4 (needs pip install 'sojourn[video]'); default
              RUN/recordings/lifetime<N>__TIME.gif

Where an environment has no pictures, bars show how often each action was taken in the task.
"""
