"""What `sojourn live --help` says before the keys."""

LIVE = """sojourn live RUN [key=value ...]

Live one endless life with a trained agent: its memory adapts at every step, and its outer
parameters go on learning from the life itself, guarded, beside a twin whose are frozen.

  sojourn live latest                                 until interrupted
  sojourn live RUN num_steps=200_000 num_lifetimes=4
  sojourn live RUN stream=dark_room_recurring learning_rate=3e-4
  sojourn live RUN guard.by=recent guard.tolerance=0.1
  sojourn live resume=latest                          go on where the last life stopped

RUN is a run folder (its newest checkpoint), a checkpoint file, latest or best. The stream is the
run's own under another root seed, without an end of the lifetime, changed by stream words; trainer
words change the run's trainer.
"""
