"""Ensembles of documented scorers, with each of the functions of MLflow that combine them."""

from __future__ import annotations

from mlflow.genai.scorers import make_scorer_ensemble

from tests.e2e import documented_scorers as scorers

ENSEMBLES = [
    make_scorer_ensemble(name=name, scorers=parts, ensemble_fn=function)
    for name, function, parts in (
        ("votes", "majority_vote", [scorers.first_word, scorers.rating, scorers.first_word]),
        ("tied", "majority_vote", [scorers.first_word, scorers.graded]),
        ("average", "mean", [scorers.word_count, scorers.average_word_length, scorers.aggregated]),
        ("least", "minimum", [scorers.word_count, scorers.is_short]),
        ("most", "maximum", [scorers.word_count, scorers.similarity]),
        ("every", "agg_all", [scorers.is_short, scorers.rating, scorers.by_another_name]),
        ("any", "agg_any", [scorers.valid_json, scorers.is_short]),
        ("no_numbers", "mean", [scorers.first_word]),
        ("no_answers", "agg_all", [scorers.first_word]),
        ("with_a_failure", "mean", [scorers.word_count, scorers.fails]),
        ("with_an_error", "mean", [scorers.feedback_with_an_error, scorers.word_count]),
        ("with_a_wrong_type", "mean", [scorers.wrong_type, scorers.word_count]),
        ("with_lists", "majority_vote", [scorers.tools_used, scorers.word_count]),
        ("with_values", "majority_vote", [scorers.nested_values]),
        ("with_nothing", "minimum", [scorers.nothing, scorers.word_count]),
        ("of_sessions", "maximum", [scorers.turns_as_a_number, scorers.turns]),
        ("of_turns", "majority_vote", [scorers.turns, scorers.turns_as_a_number]),
    )
]
ENSEMBLES.append(
    make_scorer_ensemble(
        name="nested", scorers=[ENSEMBLES[2], scorers.word_count], ensemble_fn="maximum"
    )
)
