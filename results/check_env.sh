#!/usr/bin/env bash
# check-env on 18 environments, 13 of them of packages that we did not write: about 4 minutes of one CPU core.
# Needs the packages: pip install -c constraints.txt -e '.[published]'.   Exit code 1: two of the 18 break a law.
set -euo pipefail
export SDL_VIDEODRIVER=dummy OMP_NUM_THREADS=1
${SOJOURN:-.venv/bin/sojourn} check-env \
    CartPole-v1 \
    Pendulum-v1 \
    Blackjack-v1 \
    MiniGrid-MemoryS7-v0 \
    BabyAI-GoToLocal-v0 \
    popgym:popgym-RepeatPreviousEasy-v0 \
    popgym:popgym-CountRecallEasy-v0 \
    popgym:popgym-NoisyPositionOnlyPendulumEasy-v0 \
    popgym:popgym-BattleshipEasy-v0 \
    popgym:popgym-MineSweeperEasy-v0 \
    highway_env:highway-fast-v0 \
    highway_env:parking-v0 \
    ale_py:ALE/Breakout-v5 \
    '{id: "minatar.gym:BaseEnv", kwargs: {game: breakout}}' \
    flappy_bird_gymnasium:FlappyBird-v0 \
    tetris_gymnasium.envs:tetris_gymnasium/Tetris \
    mo_gymnasium:deep-sea-treasure-v0 \
    PyFlyt.gym_envs:PyFlyt/QuadX-Hover-v1 \
    steps=1000
