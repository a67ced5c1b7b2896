"""Laws that an environment must obey to be lived in, tried on a few random episodes.

Beside Gymnasium's own checker: the same seed gives the same episode, on a used environment too; no
global generator; rewards and observations of the declared kind at every step; what is given is not
changed afterwards; episodes end; a life is restored in the middle of an episode.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env as gymnasium_check

from .actions import random_actions
from .adapter import Adapter
from .check_findings import MAX_STEPS, NUM_EPISODES, Finding, Level, Lived, Subject, live, same
from .crowd import Crowd
from .readings import reward_number
from .schedule import NeverRepeating
from .stream import Stream
from .task import Env, Family, Length

SEED = 42
OF_NO_CONCERN = ("different from the unwrapped version", "RecordConstructorArgs")
"""What Gymnasium says of wrappers as such."""


def check_family(family: Family, seed: int = SEED) -> Iterator[Finding]:
    """Everything there is to say of a family's environment, a finding per law.

    The task, the episodes and the actions follow from `seed`. What breaks is told as `broken` with
    its error, never raised.
    """
    subject = Subject(family, family.draw(np.random.default_rng(seed)), seed)
    checks: list[Callable[[Subject], Iterator[Finding]]]
    checks = [_spaces, _gymnasium_checker, _seeding, _generators, _steps, _endings, _saving]
    for check in checks:
        law = check.__name__.strip("_").replace("_", " ")
        try:
            yield from check(subject)
        except Exception as error:
            reason = (str(error).splitlines() or [""])[0]
            yield Finding("broken", law, f"{type(error).__name__}: {reason}")


def _spaces(subject: Subject) -> Iterator[Finding]:
    """What the adapter does with the spaces."""
    env, interface = subject.make(), subject.family.interface
    adapter = Adapter(env, interface)
    for name, port in adapter.ports.items():
        channel = port.channel
        values = f" of {channel.num_values} values" if channel.num_values else ""
        shape = list(channel.shape)
        yield Finding("fine", "spaces", f"{port.place} -> {name}: {channel.kind} {shape}{values}")
    options = [f"a choice among {size}" for size in interface.choices if size > 1]
    reals = [f"{interface.num_reals} reals"] if interface.num_reals else []
    text = ", ".join(options + reals) or "one action"
    yield Finding("fine", "spaces", f"{env.action_space} -> {text}")
    if adapter.shows_mask or "action_mask" in (env.reset(seed=subject.seed)[1] or {}):
        yield Finding("fine", "spaces", "action_mask is told and reaches the policy")
    env.close()


def _gymnasium_checker(subject: Subject) -> Iterator[Finding]:
    """Gymnasium's own checker: errors as warnings, for they harm nobody here, advice as notes."""
    env = subject.make()
    told: set[str] = set()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            gymnasium_check(env, skip_render_check=True)
        except Exception as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            if not any(known in reason for known in OF_NO_CONCERN):
                yield Finding("warning", "gymnasium checker", reason)
                told.add(reason)
    for warning in caught:
        # In colour, and with advice on wrapping that does not concern us.
        text = str(warning.message).replace("\x1b[33mWARN: ", "").replace("\x1b[0m", "")
        text = text.splitlines()[0]
        if text not in told and not any(known in text for known in OF_NO_CONCERN):
            told.add(text)
            yield Finding("note", "gymnasium checker", text)
    if not told:
        yield Finding("fine", "gymnasium checker", "no complaint")
    env.close()


def _seeding(subject: Subject) -> Iterator[Finding]:
    """The same seed and actions give the same episode, in a new and in a used environment."""
    env, other = subject.make(), subject.make()
    actions = subject.actions(env)
    episodes = [live(env, seed, actions) for seed in subject.seeds()]
    for seed, first in zip(subject.seeds(), episodes, strict=True):
        for player, which in ((other, "a second environment"), (env, "the same environment again")):
            difference = _difference(first, live(player, seed, actions))
            if difference is not None:
                culprit = _forgetful_wrapper(env, seed)
                text = f"reset(seed={seed}) on {which} differs: {difference}{culprit}"
                yield Finding("broken", "seeding", text)
                return
    num_steps = sum(len(episode.rewards) for episode in episodes)
    text = f"{NUM_EPISODES} episodes of {num_steps} steps repeat bit for bit from their seeds"
    yield Finding("fine", "seeding", text)
    starts = [episode.observations[0] for episode in episodes]
    if all(same(start, starts[0]) for start in starts):
        yield Finding("note", "seeding", "every seed begins with the same observation")
    env.close()
    other.close()


def _difference(one: Lived, other: Lived) -> str | None:
    for step, (a, b) in enumerate(zip(one.observations, other.observations, strict=False)):
        if not same(a, b):
            return f"the observation of step {step}"
        if step and not same(one.rewards[step - 1], other.rewards[step - 1]):
            return f"the reward of step {step}"
    return None if len(one.rewards) == len(other.rewards) else "the length of the episode"


def _forgetful_wrapper(env: Env, seed: int) -> str:
    """The outermost wrapper inside which the seed still works."""
    while isinstance(env, gymnasium.Wrapper):
        inner = env.env
        starts = [live(inner, seed, []).observations[0] for _ in range(2)]
        outer = [live(env, seed, []).observations[0] for _ in range(2)]
        if same(*starts) and not same(*outer):
            return f"; {type(env).__name__} does not pass the seed on"
        env = inner
    return ""


def _generators(subject: Subject) -> Iterator[Finding]:
    """No randomness from the global generators, which no seed of an episode reaches."""
    env = subject.make()
    numpy_state, python_state = np.random.get_state(), random.getstate()
    live(env, subject.seed, subject.actions(env))
    used = []
    if not same(list(np.random.get_state()), list(numpy_state)):
        used.append("numpy.random")
    if random.getstate() != python_state:
        used.append("random")
    if used:
        yield Finding("broken", "generators", f"draws from the global generator of {used}")
    else:
        yield Finding("fine", "generators", "no global generator is drawn from")
    env.close()


def _steps(subject: Subject) -> Iterator[Finding]:
    """Observations, rewards and flags of every step, and whether what was given stays."""
    env = subject.make()
    adapter = Adapter(env, subject.family.interface)
    lived = live(env, subject.seed, subject.actions(env))
    problems = {p for p in map(adapter.problem, lived.observations) if p is not None}
    for problem in sorted(problems):
        yield Finding("broken", "observations", problem)
    outside = [o for o in lived.observations if not env.observation_space.contains(o)]
    if outside and not problems:
        text = f"{len(outside)} of {len(lived.observations)} lie outside the declared space"
        yield Finding("warning", "observations", text)
    if lived.num_reused:
        text = "arrays are changed after they were given; the adapter copies them in time"
        yield Finding("note", "observations", text)
    kinds = sorted({type(reward).__name__ for reward in lived.rewards})
    plain = set(kinds) <= {"float", "int", "float64", "float32", "bool"}
    level: Level = "fine" if plain else "note"
    try:
        numbers = [reward_number(reward) for reward in lived.rewards]
        text = f"{', '.join(kinds)}, from {min(numbers):.4g} to {max(numbers):.4g}"
        yield Finding(level, "rewards", text)
    except ValueError as error:
        yield Finding("broken", "rewards", str(error))
    flags = {type(flag).__name__ for pair in lived.flags for flag in pair}
    if not flags <= {"bool", "bool_"}:
        yield Finding("warning", "flags", f"expected bool, got {', '.join(sorted(flags))}")
    env.close()


def _endings(subject: Subject) -> Iterator[Finding]:
    """Whether and how episodes end."""
    env = subject.make()
    actions = subject.actions(env)
    ends = [live(env, seed, actions).flags[-1] for seed in subject.seeds()]
    terminated = sum(bool(end[0]) for end in ends)
    truncated = sum(bool(end[1]) for end in ends)
    if any(end[0] and end[1] for end in ends):
        yield Finding("note", "endings", "an episode was terminated and truncated at once")
    limit = env.spec.max_episode_steps if env.spec else None
    if limit is None and env.has_wrapper_attr("max_steps"):
        limit = env.get_wrapper_attr("max_steps")
    text = f"of {NUM_EPISODES} random episodes {terminated} terminated, {truncated} truncated "
    text += f"within {MAX_STEPS} steps; time limit {limit or 'unknown'}"
    level: Level = "fine"
    if not limit and terminated + truncated == 0:
        level, text = "warning", text + "; without an end set max_episode_steps"
    yield Finding(level, "endings", text)
    env.close()


def _saving(subject: Subject) -> Iterator[Finding]:
    """A life is saved in the middle of an episode and restored by replaying it."""
    stream = Stream(NeverRepeating([subject.family]), Length(1000), subject.seed)
    crowd, other = Crowd(stream, 2), Crowd(stream, 2)
    rng = np.random.default_rng(subject.seed)
    for _ in range(25):
        crowd.step(random_actions(crowd.interface, crowd.observation["action_mask"], rng))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        other.load_state_dict(crowd.state_dict())
    lost = [str(w.message) for w in caught if "could not be replayed" in str(w.message)]
    if lost:
        text = "not in the middle of an episode: a resumed run starts the episode again"
        yield Finding("warning", "saving", text)
    else:
        yield Finding("fine", "saving", "exact in the middle of an episode, by replay")
    crowd.close()
    other.close()
