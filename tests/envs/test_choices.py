"""An argument that is one of a few words is refused in one form, whatever it belongs to."""

from __future__ import annotations

from typing import Literal

import pytest

from sojourn.envs import check_choice

Colour = Literal["red", "blue"]


def test_a_choice_is_taken() -> None:
    check_choice("paints", "red", Colour)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("rad", "paints: expected one of red, blue, got 'rad'; nearest is 'red'"),
        ("yellow", "paints: expected one of red, blue, got 'yellow'"),
        (3, "paints: expected one of red, blue, got 3"),
    ],
)
def test_another_word_is_refused_and_the_nearest_named(given: object, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        check_choice("paints", given, Colour)
    assert str(refused.value) == said
