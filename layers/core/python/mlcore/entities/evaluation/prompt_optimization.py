"""The optimization of a prompt: what a job is asked to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

GEPA: Final = "gepa"
METAPROMPT: Final = "metaprompt"
OPTIMIZER_TYPES: Final = {
    "OPTIMIZER_TYPE_GEPA": GEPA,
    "OPTIMIZER_TYPE_METAPROMPT": METAPROMPT,
}
"""Names of optimizers by their name in MLflow's protobuf enum."""
OPTIMIZER_CLASSES: Final = {GEPA: "GepaPromptOptimizer", METAPROMPT: "MetaPromptOptimizer"}
"""MLflow's classes by the name of the optimizer; runs have them as the param ``optimizer``."""
AGGREGATE: Final = "aggregate"
"""Key of the score over all scorers among the scores of a job."""
INITIAL_SCORE: Final = "initial_eval_score"
FINAL_SCORE: Final = "final_eval_score"
METRIC_CALLS: Final = "total_metric_calls"


class EvolutionSettings(NamedTuple):
    """Settings of the optimizer GEPA, under the names that MLflow and GEPA give them."""

    max_metric_calls: int = 100
    """Records that are evaluated, over all candidates, before no further candidate is tried."""
    reflection_minibatch_size: int = 3
    seed: int = 0
    skip_perfect_score: bool = True
    perfect_score: float = 1.0
    candidate_selection_strategy: str = "pareto"
    """``pareto`` or ``current_best``."""
    acceptance_criterion: str = "strict_improvement"
    """``strict_improvement`` or ``improvement_or_equal``."""


class OptimizerSettings(NamedTuple):
    """The checked ``optimizer_config`` of a job that optimizes a prompt."""

    reflection_endpoint: str
    """The gateway endpoint whose model proposes prompts."""
    evolution: EvolutionSettings = EvolutionSettings()
    guidelines: str = ""
    lm_parameters: Mapping[str, Any] = {}
    """Parameters of the model's calls for the optimizer ``metaprompt``, such as temperature."""
