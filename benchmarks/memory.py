"""How fast the memories are and how much they keep: chunks against steps, long contexts, BPTT.

    python benchmarks/memory.py [--quick] [--only chunks] [--output results/memory_speed.md]
    python benchmarks/memory.py --compile gated_delta_net kda

CPU time of one thread. What is compared takes turns in every round; figures are medians over rounds
and ratios medians of the ratios within a round.
"""

from __future__ import annotations

import argparse
import platform
import shlex
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from compiled_memory import compiled_calls
from measure import (
    CONFIGS,
    build,
    in_turns,
    keep_heap,
    ratio,
    run_chunks,
    run_steps,
    saved_numbers,
    solver_tasks,
)
from torch import Tensor
from torch.nn import functional

from sojourn.memory import MemoryCore

NAMES = sorted(path.stem for path in CONFIGS.glob("*.yaml"))
SCALAR = ("delta_net", "gated_delta_net", "linear_attention", "retnet", "mamba2", "titans_linear")
CHANNEL_GATED = ("gla", "kda", "gdn2")
NEURAL = ("titans", "ttt_mlp")
ENDLESS = ("gated_delta_net", "kda", "titans")


class Options(NamedTuple):
    """How much to measure."""

    rounds: int
    contexts: tuple[int, ...]
    quick: bool


def chunks_against_steps(options: Options) -> list[str]:
    """Section 1."""
    batch, steps = 16, 512
    lines = [
        "| memory | one call | steps | ratio | solver: one call | steps | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    names = SCALAR + CHANNEL_GATED + NEURAL
    for name in ("gated_delta_net", "kda") if options.quick else names:
        core, x = build(name), torch.randn(batch, steps, 128)
        tasks = (lambda c=core, x=x: run_chunks(c, x), lambda c=core, x=x: run_steps(c, x))
        whole = in_turns(options.rounds, *tasks)
        cells = [*map(statistics.median, whole), ratio(whole[1], whole[0])]
        alone = in_turns(options.rounds, *solver_tasks(core, x))
        cells += [*map(statistics.median, alone), ratio(alone[1], alone[0])]
        texts = [f"{cell:.1f}x" if n % 3 == 2 else f"{cell:.0f} ms" for n, cell in enumerate(cells)]
        lines.append(f"| {name} | {' | '.join(texts)} |")
    return [*lines, "", "Forward and backward, B=16, H=4, K=V=32, T=512."]


def long_contexts(options: Options) -> list[str]:
    """Section 2."""
    probes = 20 if options.quick else 100
    lines = [
        f"| memory | {' | '.join(f'after {n:,}' for n in options.contexts)} | state |",
        f"|---|{'---|' * (len(options.contexts) + 1)}",
    ]
    endless = options.contexts[-1] > 100_000
    names = ENDLESS if endless else NAMES
    for name in ("gated_delta_net", "softmax_attention") if options.quick else names:
        core = build(name, size=16, num_heads=2)
        states = []
        with torch.no_grad():
            state, seen = core.init_state(1), 0
            for context in options.contexts if not core.grows else options.contexts[:2]:
                while seen < context:
                    count = min(100, context - seen)
                    state, seen = core(torch.randn(1, count, 32), state)[1], seen + count
                states.append(state)
            token = torch.randn(1, 32)

            def act(state: Any, core: MemoryCore = core, token: Tensor = token) -> None:
                for _ in range(probes):
                    core.step(token, state)

            measured = in_turns(options.rounds, *(lambda s=s: act(s) for s in states))
        costs = [f"{1e3 * statistics.median(one) / probes:.0f} us" for one in measured]
        costs += ["-"] * (len(options.contexts) - len(costs))
        sizes = [sum(leaf.nbytes for leaf in s.values(True, True)) for s in states]
        size = f"{sizes[0]:,} B" if len(set(sizes)) == 1 else f"{sizes[0]:,} to {sizes[-1]:,} B"
        lines.append(f"| {name} | {' | '.join(costs)} | {size} |")
    return [*lines, "", "One step for one row, H=2, K=V=16."]


def saved_for_backward(options: Options) -> list[str]:
    """Section 3."""
    lines = ["| memory | recomputed | state matrices per token and head |", "|---|---|---|"]
    for size in (64, 32):
        for every in (None, 32, 128):
            core, x = build("gated_delta_net", size, chunk_size=32), torch.randn(4, 512, 4 * size)
            core.recompute_every = every
            matrices = saved_numbers(core, x) / (4 * 512 * 4 * size**2)
            lines.append(f"| gated_delta_net {size} x {size} | {every} | {matrices:.3f} |")
    if not options.quick:
        core, x = build("gated_delta_net"), torch.randn(32, 4096, 128)
        core.recompute_every = 64
        total = 4 * (saved_numbers(core, x) + x.numel())
        lines.append(f"| 32 lifetimes of 4096 steps, 4 x 32 x 32 | 64 | {total / 1e6:.0f} MB |")
    return [*lines, "", "Storages that autograd saves for one layer, chunks of 32 tokens."]


def products_alone(core: Any, x: Tensor, state: Any) -> Tensor:
    """The matrix products of one Gated DeltaNet step and nothing else, in their fastest form."""
    weights, heads = state["weights"].flatten(0, 1), core.solver.heads
    features = core.projection(x)
    rows = features[:, : 2 * heads.num_heads * heads.key_width].reshape(len(weights), 2, -1)
    found, _ = torch.split(torch.bmm(rows, weights.mT), 1, dim=1)
    torch.addcmul(weights, found.mT, rows[:, :1])
    y: Tensor = functional.linear(found.reshape(len(x), -1), core.readout.output.weight)
    return y


def straight_line(core: Any, x: Tensor, state: Any) -> Tensor:
    """All arithmetic of one Gated DeltaNet step in one function of tensors, without any module."""
    heads, views, rule = core.solver.heads, core.views, core.rule
    window, kernel = state["conv_window"], views.convolution.kernel
    width = heads.num_heads * heads.key_width
    features = functional.linear(x, core.projection.weight)
    mixed, retention, rate, gate = torch.split(features, [3 * width, *rule.sizes, width], dim=1)
    torch.cat([window[:, 1:], mixed.unsqueeze(1)], dim=1)
    mixed = torch.addcmul((window * kernel[:-1]).sum(1), mixed, kernel[-1])
    pairs = functional.silu(mixed[:, : 2 * width]).view(len(x), 2, heads.num_heads, -1)
    pairs = pairs * torch.rsqrt(pairs.square().sum(-1, keepdim=True) + 1e-6)
    value = functional.silu(mixed[:, 2 * width :]).reshape(-1, 1, heads.value_width)
    query, key = torch.split(pairs.transpose(1, 2).flatten(0, 1), 1, dim=1)
    query = query * heads.key_width**-0.5
    retention = torch.exp(-functional.softplus(retention + rule.retention.bias)).view(-1, 1, 1)
    rate = torch.sigmoid(rate + rule.write_rate.bias).view(-1, 1, 1)
    old = state["weights"].flatten(0, 1)
    found, read = torch.split(torch.bmm(torch.cat([key, query], dim=1), old.mT), 1, dim=1)
    written = rate * torch.addcmul(value, retention, found, value=-1)
    (retention * old).addcmul_(written.mT, key)
    read = torch.addcmul(retention * read, (query * key).sum(-1, keepdim=True), written)
    read = read * torch.rsqrt(read.square().mean(-1, keepdim=True) + 1e-5)
    read = read.view(len(x), -1) * functional.silu(gate) * core.readout.scale
    y: Tensor = functional.linear(read, core.readout.output.weight)
    return y


def acting(options: Options) -> list[str]:
    """Section 4."""
    core, x, probes = build("gated_delta_net"), torch.randn(32, 128), 100
    with torch.no_grad():
        state = core(torch.randn(32, 64, 128), core.init_state(32))[1]
        torch.testing.assert_close(straight_line(core, x, state), core.step(x, state)[0])
        calls = (core.step, partial(straight_line, core), partial(products_alone, core))
        tasks = [lambda call=call: [call(x, state) for _ in range(probes)] for call in calls]
        step, line, least = in_turns(options.rounds, *tasks)
    costs = [f"{1e3 * statistics.median(one) / probes:.0f} us" for one in (step, line, least)]
    return [
        "| one step | its arithmetic in a straight line | ratio | its matrix products | ratio |",
        "|---|---|---|---|---|",
        f"| {costs[0]} | {costs[1]} | {ratio(step, line):.2f}x "
        f"| {costs[2]} | {ratio(step, least):.2f}x |",
        "",
        "gated_delta_net, B=32, H=4, K=V=32, without gradients. The straight line has the "
        "convolution, the feature maps, norms, gates and the decay, but no modules and no checks; "
        "the products are the two projections, the two reads and the write.",
    ]


SECTIONS: dict[str, tuple[str, Callable[[Options], list[str]]]] = {
    "chunks": ("One call against its own steps", chunks_against_steps),
    "contexts": ("Acting after long contexts", long_contexts),
    "bptt": ("What the backward pass needs", saved_for_backward),
    "acting": ("One step of acting", acting),
}


def main() -> None:
    """Print the tables, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--quick", action="store_true", help="few memories, rounds and tokens")
    parser.add_argument("--only", choices=SECTIONS, help="one section")
    parser.add_argument("--compile", nargs="+", choices=NAMES, help="these, compiled, alone")
    parser.add_argument("--million", action="store_true", help="three memories after 10^6 tokens")
    parser.add_argument("--output", type=Path, help="Markdown file to write")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_heap()
    torch.manual_seed(0)
    contexts = (1000, 10_000) if arguments.quick else (1000, 10_000, 100_000)
    if arguments.million:
        contexts = (1000, 1_000_000)
    options = Options(3 if arguments.quick else 5, contexts, arguments.quick)
    lines = []
    if arguments.compile:
        lines += ["## Compiled", "", *compiled_calls(arguments.compile, options.rounds), ""]
    for key, (title, section) in SECTIONS.items():
        if arguments.only in (None, key) and not arguments.compile:
            lines += [f"## {title}", "", *section(options), ""]
    lines.append(f"PyTorch {torch.__version__}, one CPU thread, {platform.machine()}.")
    command = f"    python benchmarks/memory.py {shlex.join(sys.argv[1:])}".rstrip()
    report = "\n".join(["# Speed of the memories", "", command, "", *lines]) + "\n"
    print(report, end="")
    if arguments.output is not None:
        arguments.output.write_text(report)


if __name__ == "__main__":
    main()
