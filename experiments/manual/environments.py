"""What `sojourn check-env --help` and `sojourn reference --help` print."""

from __future__ import annotations

CHECK_ENV = """sojourn check-env ID ... [key=value ...]

Try an environment before a run lives in it: one line a finding, exit code 1 where a law is broken.

  sojourn check-env CartPole-v1 my_package.envs:Foo-v0
  sojourn check-env my_envs:Thermostat kwargs.leak=0.2 seed=3 steps=10000
  sojourn check-env CartPole-v1 wrappers=[gymnasium.wrappers:FlattenObservation]

  ID     a registered id, module:Id, module:function, a plug-in, or a task as stream.tasks takes it:
         '{id: CartPole-v1, attributes: {gravity: 12.0}}'
  steps  random steps that the speed and the random floor are measured over; default 2,000
  seed   of the drawn parameters, the episodes and the actions; default 0

Keys of a task hold for every ID: kwargs.NAME, attributes.NAME, wrappers, max_episode_steps, unit,
instance, missions, reference.
"""
REFERENCE = """sojourn reference ID [key=value ...]

Measure how well and how badly an environment can be played, so that regret can be told: train
single-task agents, choose one on some episodes, estimate the ceiling on others, play at random.

  sojourn reference CartPole-v1
  sojourn reference my_envs:Thermostat memory=gru num_steps=500000 runs=8
  sojourn train 'stream.tasks=[{id: CartPole-v1, reference: references/CartPole-v1.yaml}]'

  ID                  a task as stream.tasks takes it, without a reference
  runs                agents that are trained; default 5, with seeds from seed on
  num_steps           environment steps of each; default 200,000
  credit              default episode; lifetime for a task scored by rate
  selection_episodes  episodes that choose one of them; default 200
  episodes            episodes for the ceiling and again for the floor; default 400
  most_steps          most steps of ten episodes; default 100,000
  folder              where the runs lie; default runs/references/ID; finished ones are kept
  output              the file; default references/ID.yaml

All other words are those of sojourn train. The three sets of episodes have root seeds of their own.
"""
