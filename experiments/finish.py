"""What follows the last update: evaluation on fresh lifetimes, the summary, figure and page."""

from __future__ import annotations

from typing import Any

from . import report
from .build import Parts, derived_seed
from .end_page import write_end_page
from .episodes import Episodes
from .evaluations.frozen_lives import EVALUATION_LUCK, EVALUATION_STREAM, ending_row, evaluate
from .evaluations.request import held_out_config, held_out_stream
from .launch import measure
from .request import Request
from .results import RunResult
from .run import Run
from .stopping import StopRequest
from .tables import Table


def finish(request: Request, parts: Parts, run: Run, stop: StopRequest) -> bool:
    """Evaluate (unless asked to stop) and report; False when the evaluation was left out."""
    wanted = request.settings.evaluation.num_lifetimes > 0
    evaluation = None
    if wanted and stop.signal is None:
        evaluation = _evaluate(request, parts, run, stop)
    complete = evaluation is not None or not wanted
    if run.step == 0:
        return complete
    result = RunResult.read(run.folder.path)
    summary = report.summarise(result, measure(parts), parts.stream, evaluation)
    run.folder.write_json("summary.json", summary)
    report.draw_regret(result)
    run.recorder.display.say(report.regret_table(summary))
    if evaluation is not None:
        run.recorder.note(report.evaluation_line(evaluation))
    run.recorder.note(f"regret curve {run.folder.path / 'regret.png'}")
    if not request.settings.evaluation.conditions:
        return complete
    if stop.signal is None:
        page = write_end_page(RunResult.read(run.folder.path), stop, run.recorder.note)
        if page is not None:
            run.recorder.note(f"page {page}")
            return complete
    return False


def _evaluate(request: Request, parts: Parts, run: Run, stop: StopRequest) -> dict[str, Any] | None:
    """Live the evaluation's lifetimes into evaluation.csv; None when asked to stop."""
    config = held_out_config(request.config, request.settings.evaluation.stream)
    seed = derived_seed(request.config.seed, EVALUATION_STREAM)
    stream = held_out_stream(parts.stream, config, seed)
    luck = derived_seed(request.config.seed, EVALUATION_LUCK)
    path = run.folder.path / "evaluation.csv"
    table = Table(path, keep=0)
    for lived, endings in evaluate(parts.agent, stream, request.settings, luck):
        table.append(ending_row(ending, lived) for ending in endings)
        run.recorder.display.update(run.step, f"evaluating, {lived:,} steps lived")
        if stop.signal is not None:
            break
    table.close()
    if stop.signal is not None:
        return None
    return report.evaluation_summary(Episodes.from_table(path))
