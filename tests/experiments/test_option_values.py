"""Options of verbs are whole numbers or truths, and anything else is refused in one form."""

from __future__ import annotations

import pytest

from sojourn.experiments.errors import UsageError
from sojourn.experiments.option_values import truth, whole


def test_numbers_and_truths_are_read() -> None:
    assert whole("steps", "20_000", 1) == 20_000
    assert whole("seed", 0, 0) == 0
    assert truth("greedy", "true") and not truth("greedy", "false")


@pytest.mark.parametrize("given", ["many", "", "0", "-3", "1.5", "²", "_"])
def test_another_number_is_refused(given: str) -> None:
    with pytest.raises(UsageError) as refused:
        whole("steps", given, 1)
    assert str(refused.value) == f"steps={given}: expected a whole number, 1 or more"


@pytest.mark.parametrize("given", ["yes", "True", "1", ""])
def test_another_truth_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match=f"greedy={given}: expected true or false"):
        truth("greedy", given)
