"""The tasks of the probes: slow readers answer everything, blind ones score chance."""

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from sojourn.experiments import catalog
from sojourn.experiments.probes import (
    Copying,
    LinearRegression,
    NonlinearRegression,
    Overwriting,
    PermutationComposition,
    Recall,
    RegisterMachine,
    Task,
)
from sojourn.experiments.probes.plan import make_task, probe_config
from sojourn.experiments.probes.task import Batch, Classification
from sojourn.experiments.probes.training import make_generator

PROBES = catalog.options("probe")
NUM_ROWS = 256


@pytest.fixture(params=PROBES)
def task(request: pytest.FixtureRequest) -> Task:
    return make_task(probe_config(request.param))


def recall_by_hand(task: Recall | Overwriting, inputs: Tensor) -> list[list[int]]:
    """A dictionary of the last value behind every key."""
    answers, held, key = [], {}, -1
    for token in inputs.argmax(-1).tolist():
        if token < task.num_keys:
            key = token
        else:
            held[key] = token - task.num_keys
        answers.append([held.get(key, 0)])
    return answers


def copy_by_hand(task: Copying, inputs: Tensor) -> list[list[int]]:
    tokens = inputs.argmax(-1).tolist()
    word = tokens[: task.word_length]
    silent = len(tokens) - task.word_length
    return [[0]] * silent + [[symbol] for symbol in word]


def registers_by_hand(task: RegisterMachine, inputs: Tensor) -> list[list[int]]:
    """Runs the instructions one by one."""
    count, held, answers = task.num_answers, [0] * task.num_answers, []
    for token in inputs:
        target = int(token[:count].argmax())
        total = sum(
            held[i] for part in token[count : 3 * count].split(count) for i in part.nonzero()
        )
        total += int(token[3 * count :].argmax())  # 0 where there is no constant
        held[target] = total % task.num_classes
        answers.append(list(held))
    return answers


def places_by_hand(task: PermutationComposition, inputs: Tensor) -> list[list[int]]:
    """Multiplies permutation matrices."""
    places, answers = torch.eye(task.num_classes), []
    for token in inputs:
        places = places @ token.view(task.num_classes, -1)
        answers.append(places.argmax(-1).tolist())
    return answers


READERS: dict[type[Task], Callable[..., list[list[int]]]] = {
    Recall: recall_by_hand,
    Overwriting: recall_by_hand,
    Copying: copy_by_hand,
    RegisterMachine: registers_by_hand,
    PermutationComposition: places_by_hand,
}


def outputs_by_hand(task: Task, batch: Batch) -> Tensor:
    """Logits of a slow reader that sees the inputs only."""
    assert isinstance(task, Classification)
    answers = torch.tensor([READERS[type(task)](task, row) for row in batch.inputs])
    return torch.nn.functional.one_hot(answers, task.num_classes).flatten(-2).double()


@pytest.mark.parametrize("name", [n for n in PROBES if not n.startswith("regression")])
def test_a_slow_reader_scores_1_at_every_size(name: str) -> None:
    task = make_task(probe_config(name))
    for size in task.test_sizes:
        batch = task.sample(20, size, make_generator(size))
        assert task.score(outputs_by_hand(task, batch), batch) == 1.0


def test_least_squares_solves_the_linear_regression() -> None:
    task = LinearRegression(32, [32], [8, 32])
    for size in (8, 32):
        batch = task.sample(50, size, make_generator(size))
        x, y = batch.inputs[:, :-1, :-1].double(), batch.inputs[:, 1:, -1:].double()
        weights = torch.linalg.lstsq(x, y).solution
        outputs = batch.inputs[..., :-1].double() @ weights
        assert task.score(outputs, batch) == pytest.approx(1.0, abs=1e-4)


def test_each_token_carries_the_outcome_of_the_one_before() -> None:
    task = NonlinearRegression(6, [6], [6])
    batch = task.sample(3, 6, make_generator(0))
    assert torch.equal(batch.inputs[:, 1:, -1], batch.targets[:, :-1, 0])
    assert not batch.inputs[:, 0, -1].any()
    assert batch.scored.sum() == 3
    assert batch.trained.all()


def test_blind_answers_score_chance(task: Task) -> None:
    batch = task.sample(NUM_ROWS, task.size, make_generator(1))
    if isinstance(task, Classification):
        random = torch.rand(*batch.inputs.shape[:2], task.num_outputs, generator=make_generator(2))
        assert task.score(random, batch) == pytest.approx(task.chance, abs=0.03)
    else:
        zeros = torch.zeros(*batch.inputs.shape[:2], 1)
        assert task.score(zeros, batch) == task.chance


def test_shapes_are_as_declared(task: Task) -> None:
    batch = task.sample(2, task.test_sizes[0], make_generator(3))
    rows, steps, features = batch.inputs.shape
    assert (rows, features) == (2, task.num_features)
    assert batch.targets.shape[:2] == batch.trained.shape == batch.scored.shape == (2, steps)
    assert batch.scored.any(dim=1).all()
    outputs = torch.zeros(2, steps, task.num_outputs, requires_grad=True)
    task.loss(outputs, batch).backward()
    assert outputs.grad is not None and outputs.grad.abs().sum() > 0


def test_equal_generators_give_equal_bits_and_others_do_not(task: Task) -> None:
    first, second, other = (task.sample(4, task.size, make_generator(k)) for k in (5, 5, 6))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert not torch.equal(first.inputs, other.inputs)


def test_generators_of_different_keys_differ() -> None:
    keys = [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (1, 2), (2, 1), (2**62,)]
    draws = [int(torch.randint(2**60, (1,), generator=make_generator(*key))) for key in keys]
    assert all(a != b for a, b in pairwise(sorted(draws)))


def test_perfect_answers_have_no_loss() -> None:
    task = Recall(4, [4], [4], num_keys=8, num_values=4)
    batch = task.sample(3, 4, make_generator(0))
    assert float(task.loss(100 * outputs_by_hand(task, batch), batch)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Recall(4, [], [4]), "train_sizes: expected at least one size"),
        (lambda: Recall(4, [4], []), "test_sizes: expected at least one size"),
        (lambda: Recall(4, [0], [4]), "at least 1 pairs, got 0"),
        (lambda: Recall(4, [4], [65]), "num_keys: expected at least 65"),
        (lambda: Recall(65, [4], [4]), "num_keys: expected at least 65"),
        (lambda: Copying(-1, [4], [4]), "at least 0 blanks"),
        (lambda: Copying(1, [4], [4], word_length=0), "word_length: expected at least 1"),
        (lambda: Overwriting(4, [4], [4], num_pairs=33), "num_pairs: expected 1 to num_keys = 32"),
        (lambda: RegisterMachine(4, [4], [4], modulus=1), "modulus: expected at least 2"),
        (lambda: PermutationComposition(4, [4], [4], 1), "num_objects: expected at least 2"),
        (lambda: LinearRegression(4, [4], [4], 0), "num_inputs: expected at least 1"),
        (lambda: NonlinearRegression(4, [4], [4], 2, 0), "hidden_width: expected at least 1"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(make: Callable[[], Task], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        make()
