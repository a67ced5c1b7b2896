"""Differences from a reference group: paired by seed, and adjusted over the declared ones only."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sojourn.experiments.comparisons.contrasts import (
    aggregate_table,
    contrast_table,
    contrasts,
    declare,
)
from sojourn.experiments.errors import UsageError


class FakeGroup:
    """What of a group is read here."""

    follows_agent = False

    def __init__(self, label: str, memory: str, values: dict[int, float]) -> None:
        config = SimpleNamespace(choices=SimpleNamespace(memory=memory))
        self.label, self.seeds = label, list(values)
        self.runs = [
            SimpleNamespace(config=config, final_split=lambda last, v=v: (v / 4, 3 * v / 4))
            for v in values.values()
        ]
        self._values = list(values.values())

    def final_values(self, kind: str, last: float) -> list[float]:
        assert kind == "normalised"
        return self._values


def groups(*names: str) -> Any:
    made: list[FakeGroup] = []
    for number, name in enumerate(names):
        memory = name.split(",")[0]
        values = {seed: 0.1 * number + 0.01 * ((seed * (number + 3)) % 7) for seed in range(4)}
        made.append(FakeGroup(name, memory, values))
    return made


def declared(found: Sequence[Any], reference: str = "", compared: str = "") -> list[str]:
    chosen = declare(found, reference, compared)
    return [
        chosen.reference.label if chosen.reference else "-",
        *(g.label for g in chosen.compared),
    ]


def test_the_reference_is_the_gru_unless_another_is_named() -> None:
    assert declared(groups("titans", "gru", "ttt")) == ["gru"]
    assert declared(groups("titans", "ttt")) == ["-"]
    assert declared(groups("gru, a=1", "gru, a=2")) == ["-"]
    assert declared(groups("gru")) == ["-"]
    assert declared(groups("titans", "gru"), "titans") == ["titans"]
    assert declared(groups("titans, a=1", "gru, a=1"), "titans") == ["titans, a=1"]


def test_what_is_compared_is_declared() -> None:
    found = groups("titans", "gru", "ttt")
    assert declared(found, compared="all") == ["gru", "titans", "ttt"]
    assert declared(found, compared="ttt") == ["gru", "ttt"]
    assert declared(groups("gru", "ttt, a=1", "ttt, a=2"), "", "ttt, a=2") == ["gru", "ttt, a=2"]


@pytest.mark.parametrize(
    ("reference", "compared", "message"),
    [
        ("titan", "", "did you mean titans"),
        ("", "tttt", "did you mean ttt"),
        ("", "gru", "is the reference itself"),
    ],
)
def test_a_wrong_name_is_refused(reference: str, compared: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        declare(groups("titans", "gru", "ttt"), reference, compared)
    with pytest.raises(UsageError, match="2 groups have this memory"):
        declare(groups("gru", "ttt, a=1", "ttt, a=2"), "ttt", "")


def test_runs_are_paired_by_seed() -> None:
    one = FakeGroup("titans", "titans", {1: 0.5, 2: 0.7, 9: 100.0})
    two = FakeGroup("gru", "gru", {2: 0.4, 1: 0.3, 3: -100.0})
    found: Any = [one, two]
    (contrast,) = contrasts(found, declare(found, "", "all"), 0.1)
    assert contrast.difference.num_runs == 2
    assert contrast.difference.mean == pytest.approx((0.2 + 0.3) / 2)
    assert contrast.adjusted == contrast.p


def test_a_further_group_changes_no_number_of_the_others() -> None:
    few, more = groups("gru", "ttt", "titans"), groups("gru", "ttt", "titans", "mesa_net")
    tables = [
        contrast_table(contrasts(g, declare(g, "gru", "ttt,titans"), 0.1)) for g in (few, more)
    ]
    for name, column in tables[0].data.items():
        np.testing.assert_array_equal(column, tables[1].data[name][:2], err_msg=name)
    assert np.isnan(float(str(tables[1].data["p after Holm"][2]))), "it was not declared"
    robust = [aggregate_table(g, 0.1) for g in (few, more)]
    for name, column in robust[0].data.items():
        np.testing.assert_array_equal(column, robust[1].data[name][:3], err_msg=name)


def test_runs_on_a_stream_that_follows_the_agent_are_not_paired() -> None:
    found = groups("titans", "gru")
    assert contrasts(found, declare(found, "", "all"), 0.1)[0].difference.num_runs == 4
    found[0].follows_agent = True
    barred = contrasts(found, declare(found, "", "all"), 0.1)[0]
    assert barred.difference.num_runs == 0
    assert np.isnan(barred.difference.mean) and np.isnan(barred.p)
