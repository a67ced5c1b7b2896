"""The help of what asks an agent and of what explains the answers."""

from __future__ import annotations

EVALUATE = """sojourn evaluate RUN [key=value ...]

Live lifetimes that were never trained on, with frozen parameters, beside controls of the memory.

  sojourn evaluate latest
  sojourn evaluate RUN num_lifetimes=64 segments=8    every life has eight whole segments
  sojourn evaluate RUN conditions=carried,reset_task greedy=true
  sojourn evaluate RUN checkpoints=all                what the outer parameters forget
  sojourn evaluate RUN stream.length.amount=6         a changed stream, or another: stream=NAME

  RUN              a run folder (its newest checkpoint), a checkpoint file, latest or best
  conditions       carried and any of inherited,deterministic,reset_task,single_task,reset_episode,
                   frozen,shuffled,half_life,oracle,random; on bandits also thompson,
                   posterior_mean,ucb,gittins,discounted_thompson,sliding_window_ucb; default all
                   that the stream has
  num_lifetimes    default evaluation.num_lifetimes of the run, else 32
  steps            most steps of a lifetime; default evaluation.steps of the run
  segments         whole segments of every lifetime; default as many as the steps give
  greedy           true: the most likely action instead of a sampled one; default false
  seed             root seed of the held-out stream; default derived from the run's
  checkpoint       a checkpoint file; default the newest one
  probe_lifetimes  lifetimes whose memories are probed on all their tasks; default 8, 0 = none
  probe_episodes   episodes of every probe; default 4
  probe_writes     episode | frozen: whether the memory works on inside a probe episode or only
                   reads; default episode
  checkpoints      all, or how many of the run's checkpoints are tried on the tasks they were
                   trained on; default 0, none
  output           folder of tables, figures and report.html; default RUN/evaluations/TIME

The stream is the run's own under another root seed, changed by evaluation.stream of the run or by
stream words here.
"""
EXPLAIN = """sojourn explain [METRIC ...] [output=FILE.md]

The card of a number that a table prints: formula, unit, comparator, blind spots, source.

  sojourn explain                                     all names
  sojourn explain "regret, 1st episode"               a row of an evaluation
  sojourn explain continual/regret                    a column of a run's metrics.csv
  sojourn explain M7                                  all measures of a code

  METRIC  a row or column as it is printed, or a code such as M7
  output  writes the cards as Markdown; default none
"""
