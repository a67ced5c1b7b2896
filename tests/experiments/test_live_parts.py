"""The parts of an endless life that have no end themselves: tables and batch means."""

from pathlib import Path

import numpy as np
import pytest

from sojourn.experiments.lives.bounded_table import BoundedTable, Kept, newest, thinned
from sojourn.experiments.lives.learning_value import MOST_BATCHES, LearningValue
from sojourn.experiments.tables import read_table

KINDS = {"thinned": thinned, "newest": newest}


def numbers(path: Path) -> list[int]:
    return [int(n) for n in read_table(path)["number"]]


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 16, 17, 1000])
def test_what_is_kept_fits_and_spreads(count: int) -> None:
    even = [n for n in range(count) if thinned(n, count, 8)]
    last = [n for n in range(count) if newest(n, count, 8)]
    assert len(even) <= 8
    assert last == list(range(max(0, count - 8), count))
    assert len(set(np.diff(even))) <= 1
    assert len(even) > 4 or len(even) == count
    assert even[:1] == ([0] if count else [])


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_dropped_stays_dropped(kind: str) -> None:
    kept = KINDS[kind]
    for count in range(40):
        now = {n for n in range(count) if kept(n, count, 5)}
        later = {n for n in range(count) if kept(n, count + 1, 5)}
        assert later <= now


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("killed_at", [3, 10, 11, 17, 20])
def test_a_killed_table_is_the_unbroken_one(kind: str, killed_at: int, tmp_path: Path) -> None:
    """Checkpoints every five rows; the kill strikes after later rows, even after later drops."""
    kept: Kept = KINDS[kind]

    def write(table: BoundedTable, until: int) -> int:
        saved = table.count
        while table.count < until:
            table.append([{"square": table.count**2, "text": "a, b"}])
            if table.count % 5 == 0:
                table.bound()
                saved = table.count
        table.close()
        return saved

    whole, broken = tmp_path / "whole.csv", tmp_path / "broken.csv"
    write(BoundedTable(whole, kept, most=4), until=25)
    saved = write(BoundedTable(broken, kept, most=4), until=killed_at)
    for start in (saved, max(0, saved - 5)):  # the checkpoint after the drop may be missing
        with broken.open("a") as file:
            file.write("99,torn")
        write(BoundedTable(broken, kept, most=4, count=start), until=25)
        assert broken.read_bytes() == whole.read_bytes()
    assert len(numbers(whole)) <= 4


def test_the_value_is_the_mean_difference() -> None:
    value = LearningValue()
    for loss, twin in [(0.2, 0.5), (np.nan, 0.1), (0.4, 0.4), (0.1, np.nan)]:
        value.add(loss, twin)
    assert value.num_windows == 2
    np.testing.assert_allclose(value.batches(), [0.3, 0.0])
    assert value.of_life().mean == pytest.approx(0.15)
    np.testing.assert_allclose(value.mean_losses(), [0.3, 0.45])
    assert value.of_second_half().mean == 0.0


def test_nothing_is_known_before_the_first_window() -> None:
    value = LearningValue()
    assert np.isnan(value.of_life().mean)
    assert np.isnan(value.mean_losses()).all()
    assert value.of_second_half().num_runs == 0


@pytest.mark.parametrize("count", [39, 40, 41, 80, 81, 1000])
def test_batches_stay_few_and_hold_every_window(count: int) -> None:
    value = LearningValue()
    differences = np.random.default_rng(count).normal(size=count)
    for difference in differences:
        value.add(0.0, float(difference))
    batches = value.batches()
    assert len(batches) <= MOST_BATCHES
    assert len(batches) >= MOST_BATCHES // 2 or value.size == 1
    assert value.num_windows == count
    whole = differences[: len(batches) * value.size].reshape(-1, value.size).mean(1)
    np.testing.assert_allclose(batches, whole)
    again = LearningValue()
    again.load_state_dict(value.state_dict())
    again.add(0.0, 1.0)
    value.add(0.0, 1.0)
    assert again.state_dict() == value.state_dict()


def test_batches_of_a_life_with_memory_cover_its_mean() -> None:
    """Windows whose luck carries over: intervals of single windows would be far too narrow."""
    covered, lives = 0, 60
    for seed in range(lives):
        value, rng, drift = LearningValue(), np.random.default_rng(seed), 0.0
        for _ in range(1500):
            drift = 0.9 * drift + rng.normal()
            value.add(0.0, drift)
        found = value.of_life()
        covered += found.low <= 0.0 <= found.high
    assert covered >= 0.8 * lives
