"""The help of what trains agents and memories, and of what lists choices."""

from __future__ import annotations

TRAIN = """sojourn train [key=value ...]

Train an agent's outer parameters while it lives through a stream of tasks.

  sojourn train experiment=quickstart                 a preset
  sojourn train memory=delta_net seed=2               other choices of a group
  sojourn train memory=./my_core.yaml                 a file of your own
  sojourn train trainer.num_epochs=2                  a key of a group
  sojourn train resume=latest                         go on where a run stopped

Any other argument of a class named by a `_target_` may be set too, as group.key=value.
"""
CHECK_CORE = """sojourn check-core memory=NAME|FILE.yaml [key=value ...]

Check that a memory obeys the laws that training relies on: one line for each, exit code 1 if one
is broken. Any key of a training run may be given, such as memory.num_heads=4 or agent.width=32.

  sojourn check-core memory=./my_core.yaml            your own: its class may lie beside the file
  sojourn check-core memory=gated_delta_net           one of ours
"""
PROBE = """sojourn probe [probe=NAMES] [memory=NAMES] [seed=NUMBERS] [key=value ...]

Train memories on supervised tasks, without reinforcement learning, and compare their scores.

  sojourn probe probe=mqar memory=delta_net,mesa_net,ttt_mlp seed=0..2
  sojourn probe probe=all memory=all jobs=2           every memory on every probe
  sojourn probe memory=gru match=parameters           at the size of another memory

  probe      names, comma list or all; sojourn list probe; default mqar
  memory     names, comma list or all; sojourn list memory; default gated_delta_net
  seed       numbers such as 0 or 0,1 or 0..2; default 0
  match      none | parameters | state_bytes: widths are solved so that this equals the reference's;
             default none
  reference  the memory whose size is matched; default gated_delta_net
  control    none | reset_every_step: the short convolution alone, without the memory; default none
  jobs       members trained side by side, one thread each; default 1
  output     folder of rows, tables and figures; default runs/probes

Members found in the output folder with the same settings are not trained again, failed ones are:
give the same command to go on. steps, batch, lr, width, depth, mlp_ratio, task.KEY and memory.KEY
hold for all members; their defaults for one probe:
"""
STUDY = """sojourn study [study=NAME] [key=value,value ...]

Train every combination of settings and seeds, side by side, and compare them.

  sojourn study experiment=bandit memory=delta_net,gru seed=0..4
  sojourn study study=bandit                        a shipped study, or a YAML file of your own
  sojourn study study=bandit seed=7..9 jobs=8       words here go before those of the file
  sojourn study study=bandit part=2/4               the second of four machines
  sojourn study study=bandit only=gru__*            these of its members
  sojourn study study=bandit launcher=submitit      every member a job of Slurm
  sojourn study memory=delta_net,gru tune=0.1 tune.trainer.learning_rate=3e-4,1e-3 seed=0..4
  sojourn study study=bandit estimate=true          how long would it take?
  sojourn study resume=latest                       the last study goes on

  study      a file of words, sweeps and where; sojourn list study; default none
  jobs       runs side by side, one thread each; default auto: one for every core that this
             process may use, on a cluster all
  launcher   local | joblib | submitit | ray: who runs the members; default local. launcher.KEY is
             an option of it, such as launcher.slurm_partition=gpu
  part       a share such as 2/4: one job of an array on a cluster, all with the same output;
             default 1/1
  only       members by name, as in 'only=gru__*,*__s1'; default all
  match      none | parameters | state_bytes: widths are solved so that this equals the reference's;
             default none
  reference  the memory whose size is matched; default gated_delta_net
  tune       fraction of a life on which settings are tried, before the best of each group is frozen
             and lives the fresh seeds of the study; default none is tried. tune.KEY=V1,V2 are the
             values tried
  tune_seed  seeds that settings are tried under; default 1000..1001
  estimate   true: say what the members would take in time, memory and disk, and run none; default
             false
  resume     latest or the folder of a study that goes on, in place of its words; default a new one
  output     folder of the study; default runs/studies/NAME
  mix_backends  true: members with stream.backend=envpool beside others; default false

All other words are those of sojourn train; a comma or a range such as 0..4 makes several members.
A member that is finished is kept as a small row file in members/ and is not run again; one that was
cut is resumed; one that fails is told at the end (exit code 1) and tried again by the same command.
"""
LIST = """sojourn list [GROUP ...] [pictures=FILE.png]

List what can be chosen: all names with their titles, or a group with what its files say.

  GROUP     memory | stream | agent | trainer | experiment | probe | study | scale; default the
            names of all
  pictures  a file.png that draws what the first tasks of every stream look like, with the group
            stream; default none
"""
COMPLETION = """sojourn completion bash | zsh | fish

Print what makes a shell finish verbs, keys and choices on the tab key.

  source <(sojourn completion bash)                   in ~/.bashrc
  source <(sojourn completion zsh)                    in ~/.zshrc
  sojourn completion fish > ~/.config/fish/completions/sojourn.fish
"""
