"""The verb `list`: every name with its title, and all that a file says where a group is asked."""

import pytest

from sojourn.experiments import catalog
from sojourn.experiments.command import main


def test_without_a_group_every_name_stands_with_its_title(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    groups, num_names = catalog.ALL_GROUPS, 0
    starts = [printed.index(f"{group}=NAME") for group in groups]
    ends = [*starts[1:], printed.index("sojourn list GROUP")]
    for group, start, end in zip(groups, starts, ends, strict=True):
        rows = [line.split() for line in printed[start:end].splitlines()]
        for name in catalog.options(group):
            num_names += 1
            title = catalog.header(catalog.text_of(group, name))["title"].split()
            assert [name, *title[:3]] in [row[: 1 + len(title[:3])] for row in rows], name
    assert len(printed.splitlines()) < 2 * num_names


def test_a_group_tells_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "probe"]) == 0
    printed = capsys.readouterr().out
    assert all(heading in printed for heading in ("tests", "chance", "oracle"))
    assert "memory=NAME" not in printed
