"""The area over the single-task twin: by hand, without names, and U where no task returns."""

import numpy as np

from sojourn.experiments.measures.paired import area_gained, paired_regret

from .test_measures import lives_of


def test_the_area_over_the_single_task_twin_by_hand() -> None:
    single = [[[0.0, 0.5], [0.2, 0.4], [0.5, 0.5]], [[0.1, 0.9], [0.2, 0.4], [0.6, 1.0]]]
    found = area_gained(lives_of(), lives_of(single))
    task_0 = [(0.0 + 0.5 + 0.6 + 0.8) / 4 - (0.0 + 0.5 + 0.5 + 0.5) / 4, (3.0 - 2.6) / 4]
    task_1 = [0.0, 0.0]
    np.testing.assert_allclose(found, [(a + b) / 2 for a, b in zip(task_0, task_1, strict=True)])


def test_the_area_counts_every_task_once_and_does_not_ask_for_its_name() -> None:
    rng = np.random.default_rng(2)
    one, two = (rng.random((4, 3, 2)).tolist() for _ in range(2))
    found = area_gained(lives_of(one), lives_of(two))
    again = area_gained(lives_of(one, tasks=(7, 3, 7)), lives_of(two, tasks=(7, 3, 7)))
    np.testing.assert_allclose(found, again, atol=1e-12)
    np.testing.assert_allclose(area_gained(lives_of(one), lives_of(one)), 0.0, atol=1e-12)
    never = [lives_of(scores, tasks=(0, 1, 2)) for scores in (one, two)]
    utility = paired_regret(*never).per_lifetime()
    np.testing.assert_allclose(area_gained(*never), utility, atol=1e-12)
