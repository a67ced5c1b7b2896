"""Schedules are functions of progress, never of time."""

import pytest

from sojourn.agents import Constant, Horizon, Linear
from sojourn.agents.schedules import as_schedule


def test_linear_reaches_its_end_at_until_and_stays() -> None:
    schedule = Linear(1.0, 0.0, until=0.5)
    assert [schedule(p) for p in (0.0, 0.25, 0.5, 1.0)] == pytest.approx([1.0, 0.5, 0.0, 0.0])


def test_horizon_grows_the_horizon_in_a_straight_line() -> None:
    schedule = Horizon(0.9, 0.99)
    assert [1 / (1 - schedule(p)) for p in (0.0, 0.5, 1.0)] == pytest.approx([10, 55, 100])


def test_numbers_are_constant_schedules() -> None:
    assert as_schedule(3)(0.7) == 3.0
    assert as_schedule(Constant(2.0))(0.1) == 2.0


@pytest.mark.parametrize("until", [0.0, -1.0, 1.5])
def test_an_impossible_until_is_refused(until: float) -> None:
    with pytest.raises(ValueError, match="until"):
        Linear(0, 1, until)


def test_a_discount_of_one_has_no_horizon() -> None:
    with pytest.raises(ValueError, match=r"schedule.end: expected a number in"):
        Horizon(0.9, 1.0)
