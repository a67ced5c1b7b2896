"""Tables survive kills, hold every step once, and read back as they were written."""

import math
from pathlib import Path

import numpy as np
import pytest

from sojourn.experiments import tables
from sojourn.experiments.errors import RunError
from sojourn.experiments.tables import Table, last_rows, read_table, write_table


def write(path: Path, steps: range, keep: int | None = None) -> Table:
    table = Table(path, keep)
    for step in steps:
        table.append([{"step": step, "value": step / 3, "name": f"n,{step}", "none": math.nan}])
    return table


def test_rows_are_readable_while_the_table_is_open(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", range(3))
    columns = read_table(tmp_path / "t.csv")
    table.close()
    assert columns["step"].tolist() == [0, 1, 2]
    assert columns["value"].tolist() == [0.0, 1 / 3, 2 / 3], "floats come back bit for bit"
    assert columns["name"].tolist() == ["n,0", "n,1", "n,2"]
    assert np.isnan(columns["none"]).all()


def test_a_torn_last_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write(path, range(3)).close()
    whole = path.read_bytes()
    for cut in range(len(whole) - 1, len(whole) - 8, -1):
        path.write_bytes(whole[:cut])
        assert read_table(path)["step"].tolist() == [0, 1]
    table = write(path, range(2, 4))
    table.close()
    assert read_table(path)["step"].tolist() == [0, 1, 2, 3]


def test_a_torn_letter_is_dropped_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("name\na\nä".encode()[:-1])
    assert read_table(tmp_path / "t.csv")["name"].tolist() == ["a"]


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3\n4,5\n")
    with pytest.raises(RunError, match=r"t\.csv: line 3 has 1 of 2 cells"):
        read_table(tmp_path / "t.csv")


def test_resuming_cuts_back_so_that_each_step_is_there_once(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", range(10)).close()
    table = write(tmp_path / "t.csv", range(5, 12), keep=5)
    table.close()
    assert table.num_rows == 12
    assert read_table(tmp_path / "t.csv")["step"].tolist() == list(range(12))


def test_columns_may_appear_later(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", range(2))
    table.append([{"step": 2, "late": 5}])
    table.append([{"step": 3}])
    table.close()
    columns = read_table(tmp_path / "t.csv")
    np.testing.assert_array_equal(columns["late"], [math.nan, math.nan, 5, math.nan])
    assert columns["step"].tolist() == [0, 1, 2, 3]


def test_a_new_table_forgets_the_old_file(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", range(3)).close()
    write(tmp_path / "t.csv", range(7, 8), keep=0).close()
    assert read_table(tmp_path / "t.csv")["step"].tolist() == [7]


def test_a_missing_or_empty_table_has_no_columns(tmp_path: Path) -> None:
    assert read_table(tmp_path / "no.csv") == {}
    (tmp_path / "empty.csv").write_text("")
    assert read_table(tmp_path / "empty.csv") == {}


def test_later_rows_replace_earlier_ones() -> None:
    columns = {"a": np.array([1, 2, 1]), "b": np.array([0, 0, 0]), "v": np.array([5, 6, 7])}
    kept = last_rows(columns, ("a", "b"))
    assert kept["v"].tolist() == [6, 7]


def test_whole_columns_are_written_at_once(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", {"x": [1, 2], "y": [0.5, math.nan]})
    assert (tmp_path / "t.csv").read_text() == "x,y\n1,0.5\n2,\n"


def test_columns_do_not_depend_on_the_blocks_they_are_read_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.csv"
    names = ["7", "8.50", "", "nine\nten", "11"]
    write_table(path, {"number": [1, None, 3, 4.5, 5], "name": names, "none": [None] * 5})
    whole = read_table(path)
    assert whole["name"].tolist() == ["7", "8.50", "", "nine ten", "11"]
    for rows in (1, 2, 3, 5):
        monkeypatch.setattr(tables, "BLOCK_ROWS", rows)
        blocks = read_table(path)
        assert all(np.array_equal(blocks[n], whole[n], equal_nan=n != "name") for n in whole)
