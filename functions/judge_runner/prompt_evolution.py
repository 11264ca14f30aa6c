"""Evolves a prompt by reflection, in the manner of GEPA (Genetic-Pareto): each step lets a model
rewrite a candidate after seeing its mistakes on a few records. Candidates that are best on at least
one record can be rewritten further.

This is GEPA for a system with one text, so it omits two parts of GEPA that are for several texts:
the choice of the text to rewrite, and the merge of two candidates. The steps follow from the seed
and the scores alone, so an execution that is repeated with the same scores repeats them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mlcore.entities.evaluation.prompt_optimization import EvolutionSettings


class Evaluated(NamedTuple):
    """A dataset record's result in prompt optimization: the model's answer and the scores of it."""

    position: int
    """The record's position in the dataset."""
    output: str
    score: float
    """The mean over all scorers; greater is better."""
    scores: dict[str, float]
    """The score of each scorer, by scorer."""
    rationales: dict[str, str]
    """The reasons of the scorers that give one, by scorer."""


class Candidate(NamedTuple):
    """A prompt of an optimization job that was evaluated on all records of the job's dataset."""

    text: str
    evaluated: tuple[Evaluated, ...]
    """The evaluation of each record, in the order of the records."""

    @property
    def score(self) -> float:
        return mean([each.score for each in self.evaluated])


Evaluate = Callable[[str, Sequence[int]], list[Evaluated]]
"""Evaluates a prompt on the records at these positions."""
Propose = Callable[[str, Sequence[Evaluated]], str | None]
"""Takes a prompt and its evaluations; returns a better prompt, or None if the model gives none."""
Validated = Callable[[int, Candidate, int], None]
"""Called for each new candidate with its number, the candidate, and the number of evaluations of
records so far."""


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def evolve(
    text: str,
    record_count: int,
    settings: EvolutionSettings,
    evaluate: Evaluate,
    propose: Propose,
    validated: Validated,
) -> list[Candidate]:
    """Returns the candidate prompts in the order in which they were found, the given prompt first.
    No further one is tried after ``max_metric_calls`` evaluations of a record, or, if
    ``skip_perfect_score`` is set, after a candidate that is perfect on all records.

    Args:
        text: the prompt to improve.
        evaluate: evaluates a prompt on some records.
        propose: returns a better prompt, or None.
        validated: is called for each candidate after its evaluation on all records.
    """
    generator = random.Random(settings.seed)  # noqa: S311 -- must be repeatable
    records = range(record_count)
    candidates = [Candidate(text, tuple(evaluate(text, records)))]
    calls = record_count
    validated(0, candidates[0], calls)
    batches = _Batches(record_count, settings.reflection_minibatch_size, generator)
    while calls < settings.max_metric_calls and not _has_perfect(candidates, settings):
        parent = candidates[_select(candidates, settings, generator)]
        batch = batches.next()
        before = evaluate(parent.text, batch)
        calls += len(batch)
        if settings.skip_perfect_score and _all_perfect(before, settings):
            continue
        proposed = propose(parent.text, before)
        if proposed is None or any(proposed == each.text for each in candidates):
            continue
        after = evaluate(proposed, batch)
        calls += len(batch)
        if not _accepts(before, after, settings):
            continue
        candidates.append(Candidate(proposed, tuple(evaluate(proposed, records))))
        calls += record_count
        validated(len(candidates) - 1, candidates[-1], calls)
    return candidates


def best(candidates: Sequence[Candidate]) -> Candidate:
    """Returns the prompt that scores best over all evaluation records; of equal ones the first."""
    return max(candidates, key=lambda candidate: candidate.score)


def frontier(candidates: Sequence[Candidate]) -> list[int]:
    """Returns the positions, in ``candidates``, of those prompt candidates that have the best score
    on some dataset record; a position occurs once for each such record. A candidate is left out if,
    for each record on which it is best, a remaining candidate is equally good."""
    fronts = []
    for record in range(len(candidates[0].evaluated)):
        scores = [candidate.evaluated[record].score for candidate in candidates]
        top = max(scores)
        fronts.append({at for at, score in enumerate(scores) if score == top})
    staying = set().union(*fronts)
    for at in sorted(staying, key=lambda at: (candidates[at].score, -at)):
        if all(front & staying - {at} for front in fronts if at in front):
            staying.discard(at)
    return [at for front in fronts for at in sorted(front & staying)]


class _Batches:
    """Small batches of records: each record once in an epoch, in a new order in every epoch. The
    last batch of an epoch is filled with the records that were drawn least often."""

    def __init__(self, record_count: int, size: int, generator: random.Random) -> None:
        self._record_count, self._generator = record_count, generator
        self._size = min(size, record_count)
        self._waiting: list[int] = []
        self._drawn = [0] * record_count

    def next(self) -> list[int]:
        if not self._waiting:
            self._waiting = list(range(self._record_count))
            self._generator.shuffle(self._waiting)
        batch, self._waiting = self._waiting[: self._size], self._waiting[self._size :]
        rest = [at for at in range(self._record_count) if at not in batch]
        rest.sort(key=lambda at: self._drawn[at])
        batch += rest[: self._size - len(batch)]
        for at in batch:
            self._drawn[at] += 1
        return batch


def _select(
    candidates: Sequence[Candidate], settings: EvolutionSettings, generator: random.Random
) -> int:
    """Returns the position of the candidate to rewrite: the best one, or a random one of the
    frontier, weighted by the number of records on which it is best."""
    if settings.candidate_selection_strategy == "current_best":
        return candidates.index(best(candidates))
    return generator.choice(frontier(candidates))


def _all_perfect(evaluated: Sequence[Evaluated], settings: EvolutionSettings) -> bool:
    return all(each.score >= settings.perfect_score for each in evaluated)


def _has_perfect(candidates: Sequence[Candidate], settings: EvolutionSettings) -> bool:
    return settings.skip_perfect_score and any(
        _all_perfect(candidate.evaluated, settings) for candidate in candidates
    )


def _accepts(
    before: Sequence[Evaluated], after: Sequence[Evaluated], settings: EvolutionSettings
) -> bool:
    gain = sum(each.score for each in after) - sum(each.score for each in before)
    return gain >= 0 if settings.acceptance_criterion == "improvement_or_equal" else gain > 0
