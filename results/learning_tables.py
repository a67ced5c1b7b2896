"""The tables of the learning studies, from the row files that their finished members have left.

python results/learning_tables.py [STUDY ...]
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sojourn.experiments.markdown import markdown_table
from sojourn.experiments.statistics import interval
from sojourn.experiments.tables import read_table

ROOT = Path(__file__).parent / "learning"
COLUMNS = {
    "first episode": ("regret_end", "by_episode", 0, "normalised"),
    "last episode": ("regret_end", "by_episode", -1, "normalised"),
    "all": ("regret_end", "all", "normalised"),
    "held out": ("evaluation", "all", "normalised"),
    "held out, return": ("evaluation", "return", "mean"),
    "held out, lost return": ("evaluation", "lost_return", "mean"),
}
MEASURES = (
    "regret, all episodes",
    "regret, 1st episode",
    "regret, 2nd episode",
    "regret, 3rd episode",
    "regret minus carried",
    "utility U, first visits",
    "utility U, revisits",
)


def main() -> None:
    chosen = sys.argv[1:] or sorted(path.name for path in ROOT.iterdir() if path.is_dir())
    hours = 0.0
    for study in chosen:
        print(f"\n## {study}\n")
        groups = grouped(ROOT / study / "members")
        hours += sum(minutes(one) for group in groups.values() for one in group) / 60
        head = ["members", "n", *COLUMNS, "parameters", "state bytes", "steps", "minutes"]
        print(markdown_table(head, [row(name, of) for name, of in groups.items()]))
        asked = sorted((ROOT / study / "evaluations").glob("*.csv"))
        if asked:
            print()
            print(markdown_table(["member", "condition", *MEASURES], conditions(asked)))
    print(f"\n{hours:.1f} hours of one core in all, for training; evaluations are not counted.")


def grouped(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Summaries by what their members have in common beside the seed."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        shared = [_label(key, value) for key, value in content["choices"].items() if key != "seed"]
        groups.setdefault(" ".join(shared), []).append(content["summary"])
    return groups


def _label(key: str, value: str) -> str:
    named = key in ("memory", "stream", "experiment")
    return value if named else f"{key.rpartition('.')[2]}={value}"


def row(name: str, summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line: intervals are Student's over runs."""
    cells = [str(interval([read(s, path) for s in summaries])) for path in COLUMNS.values()]
    first = summaries[0]
    facts = [f"{first[key]:,}" for key in ("num_parameters", "state_bytes", "steps")]
    return [name, str(len(summaries)), *cells, *facts, f"{minutes(first):.1f}"]


def minutes(summary: Mapping[str, Any]) -> float:
    """What training took, on a machine that may have been busy."""
    took: float = summary["steps"] / summary["steps_per_second"] / 60
    return took


def read(summary: Any, path: Sequence[Any]) -> float:
    """A number of a summary; NaN where it has none."""
    for key in path:
        if not summary:
            return float("nan")
        summary = summary[key]
    return float("nan") if summary is None else float(summary)


def conditions(files: Sequence[Path]) -> list[list[str]]:
    """A line for every condition of every evaluated member."""
    lines = []
    for path in files:
        columns = read_table(path)
        values: dict[str, dict[str, str]] = {}
        for measure, condition, mean, low, high in zip(
            *(columns[name] for name in ("measure", "condition", "mean", "low", "high")),
            strict=True,
        ):
            cell = f"{float(mean):.3f} [{float(low):.3f}, {float(high):.3f}]"
            values.setdefault(str(condition), {})[str(measure)] = cell
        lines += [
            [path.stem, condition, *(found.get(name, "") for name in MEASURES)]
            for condition, found in values.items()
        ]
    return lines


if __name__ == "__main__":
    main()
