"""What a study leaves: tables, figures and, for recall probes, the rules alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from omegaconf import DictConfig, OmegaConf
from rich.console import RenderableType

from ..build import build_memory
from ..catalog import header as file_header
from ..catalog import text_of
from ..markdown import markdown_table
from .figures import draw_overview, draw_probe
from .member import Member, Result
from .named_rules import named_rules
from .plan import Plan, make_task
from .rules import WIDTH, measure_rule, reader_of
from .summary import (
    Group,
    Rules,
    detail,
    group_results,
    overview,
    rich_table,
    rule_table,
    write_summary,
)

PROBES_OF_RULES = ("capacity", "overwriting")
RULE_TABLES = {
    "recall": "Rules alone: recall of all pairs, by their number (key width 32)",
    "age": "Rules alone: recall among 96 pairs, by quarter of the stream (1 = oldest)",
    "overwriting": "Rules alone: latest of R values of 16 keys, by R",
    "correlated": "Rules alone: recall of 16 pairs, by the cosine between keys",
    "unseen": "Rules alone: R^2 on new keys of a linear map (1) and a network (2) after 128 pairs",
}


def report(wanted: Plan, results: Sequence[Result]) -> Iterator[RenderableType]:
    """Write probes.md, probes.csv and the figures; yields what a person should see of them."""
    groups = group_results(results)
    tasks = {probe: make_task(config) for probe, config in wanted.probes.items()}
    sections, remarks = [], _remarks(wanted, groups)
    table = overview(groups)
    if len(tasks) > 1:
        sections.append(("Mean scores", markdown_table(*table)))
        draw_overview(wanted.output, *table, {name: task.chance for name, task in tasks.items()})
        yield rich_table("Mean scores", *table)
    for probe, task in tasks.items():
        of_probe = [group for group in groups if group.probe == probe]
        title = f"{probe}: score at {task.size} {task.size_name}, chance {task.chance:.3g}"
        about = file_header(text_of("probe", probe))["title"]
        sections.append((title, f"{about}.\n\n{markdown_table(*detail(of_probe))}"))
        draw_probe(wanted.output, probe, task, of_probe)
        if len(tasks) == 1:
            yield rich_table(title, *detail(of_probe))
    if set(tasks) & set(PROBES_OF_RULES):
        rules, unmeasured = measure_rules(wanted.members)
        remarks += unmeasured
        for name, title in RULE_TABLES.items():
            sections.append((title, markdown_table(*rule_table(rules, name))))
            if len(tasks) == 1 and name in ("recall", "overwriting"):
                yield rich_table(title, *rule_table(rules, name))
    if remarks:
        sections.append(("Remarks", "\n".join(f"* {line}" for line in remarks)))
        yield "\n".join(remarks)
    write_summary(wanted.output, sections, groups)


def measure_rules(members: Sequence[Member]) -> tuple[Rules, list[str]]:
    """The textbook rules, and the members' memories as configured with gates at an input of zero.

    Memories get one head and width `WIDTH`; those without fast weights are left out, those that
    cannot be measured are named in the remarks: a study's tables must not depend on them.
    """
    rules = {name: measure_rule(reader) for name, reader in named_rules().items()}
    remarks = []
    for name, member in {member.memory: member for member in members}.items():
        try:
            reader = reader_of(build_memory(_one_wide_head(member), WIDTH))
            if reader is not None:
                rules[f"{name} (initial gates)"] = measure_rule(reader)
        except Exception as error:
            remarks.append(f"not among the rules alone: {name}: {type(error).__name__}: {error}")
    return rules, remarks


def _one_wide_head(member: Member) -> DictConfig:
    config = OmegaConf.create(member.settings)
    assert isinstance(config, DictConfig)
    for key, value in (("num_heads", 1), ("key_width", WIDTH), ("value_width", WIDTH)):
        if key in config.memory:
            config.memory[key] = value
    torch.manual_seed(0)  # of the initial weights of neural memories
    return config


def _remarks(wanted: Plan, groups: Sequence[Group]) -> list[str]:
    left_out = [f"left out: {line}" for line in wanted.left_out]
    return left_out + [f"failed: {line}" for group in groups for line in group.errors]
