"""Evolution of a prompt: which candidates are tried, how many evaluations it takes, and that the
same scores give the same steps."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_runner.prompt_evolution import Candidate, Evaluated, best, evolve, frontier
from mlcore.entities.evaluation.prompt_optimization import EvolutionSettings


def evaluated(position: int, score: float) -> Evaluated:
    return Evaluated(position, "", score, {"s": score}, {})


def candidate(*scores: float) -> Candidate:
    return Candidate("", tuple(evaluated(at, score) for at, score in enumerate(scores)))


class World:
    """A prompt is a number; on each record it scores by chance, the same each time, the better the
    greater it is."""

    def __init__(self, records: int) -> None:
        self.records, self.calls = records, 0
        self.steps: list[Any] = []

    def evaluate(self, text: str, positions: Sequence[int]) -> list[Evaluated]:
        self.calls += len(positions)
        self.steps.append((text, tuple(positions)))
        return [
            evaluated(at, round(min(random.Random(f"{text} {at}").random() * int(text), 9.0), 1))
            for at in positions
        ]

    def propose(self, text: str, seen: Sequence[Evaluated]) -> str | None:
        self.steps.append(("propose", text, tuple(each.position for each in seen)))
        return str(int(text) + 1) if len(self.steps) % 3 else None

    def run(self, settings: EvolutionSettings) -> list[Candidate]:
        validated: list[int] = []

        def log(number: int, _candidate: Candidate, calls: int) -> None:
            validated.append(number)
            assert calls == self.calls

        candidates = evolve("1", self.records, settings, self.evaluate, self.propose, log)
        assert validated == list(range(len(candidates)))
        return candidates


@given(
    st.integers(1, 8),
    st.integers(1, 60),
    st.integers(1, 5),
    st.integers(-5, 5),
    st.sampled_from(["pareto", "current_best"]),
    st.sampled_from(["strict_improvement", "improvement_or_equal"]),
)
def test_steps_are_repeated_and_limited(
    records: int, most: int, size: int, seed: int, selection: str, criterion: str
) -> None:
    settings = EvolutionSettings(
        max_metric_calls=most,
        reflection_minibatch_size=size,
        seed=seed,
        perfect_score=9.0,
        candidate_selection_strategy=selection,
        acceptance_criterion=criterion,
    )
    first, second = World(records), World(records)
    assert first.run(settings) == second.run(settings)
    assert first.steps == second.steps
    # The last step may be begun with one evaluation left.
    assert first.calls <= max(most - 1, 0) + 2 * size + 2 * records
    assert all(len(set(step[1])) == len(step[1]) for step in first.steps if len(step) == 2)


def test_each_epoch_has_each_record() -> None:
    world = World(6)
    world.propose = lambda *_: None
    world.run(EvolutionSettings(max_metric_calls=6 + 24, reflection_minibatch_size=4))
    batches = [step[1] for step in world.steps[1:]]
    assert [len(batch) for batch in batches] == [4] * 6
    for start in range(0, 6, 2):
        assert set(batches[start] + batches[start + 1]) == set(range(6))


def test_a_perfect_candidate_ends_it() -> None:
    world = World(3)
    run = world.run(EvolutionSettings(perfect_score=0.0))
    assert (len(run), world.calls) == (1, 3)


@pytest.mark.parametrize(
    ("scores", "staying"),
    [
        ([(1, 0), (0, 1)], [0, 1]),
        ([(1, 1), (1, 0), (0, 0)], [0, 0]),
        ([(0, 0), (0, 0)], [0, 0]),
        # Each two of these cover all records; the last of equal ones goes first.
        ([(1, 1, 0), (1, 0, 1), (0, 1, 1)], [0, 1, 0, 1]),
    ],
)
def test_the_frontier(scores: list[tuple[float, ...]], staying: list[int]) -> None:
    assert frontier([candidate(*each) for each in scores]) == staying


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=1, max_size=6))
def test_the_frontier_has_a_best_candidate_of_each_record(
    scores: list[tuple[int, int, int, int]],
) -> None:
    candidates = [candidate(*map(float, each)) for each in scores]
    staying = set(frontier(candidates))
    for record in range(4):
        top = max(each[record] for each in scores)
        assert any(scores[at][record] == top for at in staying)


def test_the_first_of_equal_candidates_is_best() -> None:
    equal = [candidate(1, 0), candidate(0, 1)]
    assert best(equal) is equal[0]
