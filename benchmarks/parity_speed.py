"""How fast the chunk forms are beside the published ones that run on a CPU, on the same tensors.

    make parity        # or: python benchmarks/parity_speed.py [--output results/parity_speed.md]

Forward and backward of the recurrence alone, float32, one thread, process time; both take turns in
every round, a figure is the median over rounds, a ratio the median of the ratios within a round.
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from parity_rows import (
    HEADS,
    SHAPES,
    Call,
    Row,
    channel_rows,
    make_views,
    other_rows,
    scalar_rows,
)

from sojourn.memory import Heads


def seconds(call: Call) -> float:
    """CPU seconds of one forward and backward."""
    start = time.process_time()
    call().square().sum().backward()
    return time.process_time() - start


def line(row: Row, shape: str, rounds: int) -> str:
    """One line of the table."""
    measured = np.array(
        [[seconds(call) for call in (row.ours, *row.theirs.values())] for _ in range(rounds + 1)]
    )[1:]
    best = 1 + int(np.median(measured[:, 1:], axis=0).argmin())
    ours, theirs = measured[:, 0], measured[:, best]
    ratio = np.median(theirs / ours)
    figures = " | ".join(f"{1e3 * np.median(figure):.1f}" for figure in (ours, theirs))
    return f"| {row.title} | {shape} | {figures} | {list(row.theirs)[best - 1]} | {ratio:.1f}x |"


def table(rounds: int) -> str:
    """The whole report as Markdown."""
    lines = [
        "| memory | shape | ours, ms | theirs, ms | theirs at | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for shape, (batch, steps, width) in SHAPES.items():
        views, heads = make_views(batch, steps, width), Heads(width, HEADS, width, width)
        for rows in (scalar_rows, channel_rows, other_rows):
            lines += [line(row, shape, rounds) for row in rows(views, heads)]
    lines += [
        "",
        f"Forward and backward of the recurrence, {HEADS} heads (Titans 1), float32, one thread, "
        f"CPU time, median of {rounds} interleaved rounds. Ours at the chunk size of its "
        "configuration; theirs, the `naive` chunk forms of flash-linear-attention 0.6.0 and "
        f"titans-pytorch 0.5.5, at the fastest setting tried. torch {torch.__version__}, Python "
        f"{platform.python_version()}, {platform.machine()}. Their GPU kernels are not measured.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--rounds", type=int, default=7, help="measured rounds")
    parser.add_argument("--output", type=Path, help="Markdown file to write")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # the packages say at length that there is no GPU
    report = table(options.rounds)
    print(report, end="")
    if options.output is not None:
        options.output.write_text(report)


if __name__ == "__main__":
    main()
