"""What the members of a study would take: one forecast for all that differ by seed only."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from rich.table import Table

from ..forecast import MEGABYTE, Forecast, forecast
from ..pace import Duration
from .member import Member


@dataclass(frozen=True)
class Cost:
    """`num_members` of a group, and what each of them takes."""

    group: str
    num_members: int
    each: Forecast


def measure(members: Sequence[Member]) -> list[Cost]:
    """Forecasts one after the other, each in a fresh process, so that none slows another and memory
    is that of one member. Raises what `forecast` raises.
    """
    groups: dict[str, list[Member]] = {}
    for member in members:
        groups.setdefault(member.group, []).append(member)
    costs = []
    for group, found in groups.items():
        words = [*found[0].words, "num_threads=1", "quiet=true"]
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            costs.append(Cost(group, len(found), pool.submit(forecast, words).result()))
    return costs


def cost_table(costs: Sequence[Cost]) -> Table:
    """A row for every group."""
    table = Table(title="What the members that are left would take", title_justify="left")
    table.add_column("group")
    for column in ("members", "time each", "memory MB", "disk MB"):
        table.add_column(column, justify="right")
    for cost in costs:
        each = cost.each
        sizes = (f"{n / MEGABYTE:,.0f}" for n in (each.memory_bytes, each.disk_bytes))
        time = each.time.removeprefix("about ")
        table.add_row(cost.group, str(cost.num_members), time, *sizes)
    return table


def total_line(costs: Sequence[Cost], jobs: int) -> str:
    """Members x estimate: time with `jobs` of them at once, memory at the worst, disk of all."""
    count = sum(cost.num_members for cost in costs)
    if not count:
        return "nothing is left to run"
    together = Duration(0.0, 0.0, 0.0)
    for cost in costs:
        together += cost.each.duration * cost.num_members
    largest = sorted(c.each.memory_bytes for c in costs for _ in range(c.num_members))[-jobs:]
    disk = sum(cost.each.disk_bytes * cost.num_members for cost in costs)
    return (
        f"{count} members take about {together * (1 / min(jobs, count))} with jobs={jobs}, if side "
        f"by side they are as fast as alone; at most {sum(largest) / MEGABYTE:,.0f} MB of memory "
        f"and {disk / MEGABYTE:,.0f} MB of disk"
    )
