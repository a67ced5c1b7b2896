"""Retention against acquisition in two rooms that return: one point for every memory.

python results/learning_figures.py
"""

from pathlib import Path

from matplotlib.figure import Figure

from sojourn.experiments.tables import read_table

ROOT = Path(__file__).parent / "learning"
ACQUISITION = ("residual regret, first visits", "reset_task")
RETENTION = ("regret minus carried", "shuffled")
Estimate = tuple[float, float, float]


def main() -> None:
    """Write `results/learning/retention.png`."""
    points: dict[str, list[tuple[Estimate, Estimate]]] = {}
    for path in sorted((ROOT / "recurring_rooms" / "evaluations").glob("*.csv")):
        measured = estimates(path)
        if RETENTION in measured:
            of_memory = points.setdefault(path.stem.partition("__")[0], [])
            of_memory.append((measured[ACQUISITION], measured[RETENTION]))
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axis = figure.subplots()
    places = [(1 - learned[0], kept[0]) for runs in points.values() for learned, kept in runs]
    for number, (memory, runs) in enumerate(points.items()):
        for learned, kept in runs:
            x, y = 1 - learned[0], kept[0]
            colour = f"C{number % 10}"
            axis.errorbar(x, y, _around(kept), _around(learned), "o", color=colour, ms=4, lw=0.7)
            crowded = any(0 < right - x < 0.045 and abs(up - y) < 0.022 for right, up in places)
            corner, side = ((-4, 4), "right") if crowded else ((4, 4), "left")
            axis.annotate(memory, (x, y), corner, textcoords="offset points", size=8, ha=side)
    axis.axhline(0, color="0.6", lw=0.8)
    axis.margins(x=0.12)
    axis.set_xlabel("acquisition: score in the 2nd episode of a goal first met, memory fresh")
    axis.set_ylabel("retention: what another life's memory costs")
    axis.set_title("Two rooms that return, one point for every run", loc="left", size=10)
    caption = "Bars are 95 % intervals over 128 held-out lives; right and up is better."
    figure.supxlabel(caption, size=8)
    figure.savefig(ROOT / "retention.png", dpi=150)


def estimates(path: Path) -> dict[tuple[str, str], Estimate]:
    """Mean, low and high by measure and condition."""
    columns = read_table(path)
    rows = zip(
        *(columns[name] for name in ("measure", "condition", "mean", "low", "high")), strict=True
    )
    return {
        (str(m), str(c)): (float(mean), float(low), float(high)) for m, c, mean, low, high in rows
    }


def _around(estimate: Estimate) -> list[list[float]]:
    mean, low, high = estimate
    return [[mean - low], [high - mean]]


if __name__ == "__main__":
    main()
