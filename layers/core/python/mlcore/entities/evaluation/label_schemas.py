"""A label schema: a question that reviewers answer."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

FEEDBACK: Final = "FEEDBACK"
DEFAULT_NAME: Final = "Feedback"
DEFAULT_INSTRUCTION: Final = "Share any feedback on this trace."
INPUTS: Final = {
    "pass_fail": "InputPassFail",
    "categorical": "InputCategorical",
    "numeric": "InputNumeric",
    "text": "InputText",
}
"""Kinds of input, and their names in MLflow's messages."""
Input = dict[str, dict[str, Any]]
"""One kind of input and its fields."""


class LabelSchema(NamedTuple):
    schema_id: str
    experiment_id: str
    name: str
    schema_type: str
    input: Input
    instruction: str | None
    enable_comment: bool
    is_default: bool
    created_time: int
    last_update_time: int
    version: int = 0
    """Version of the stored item."""
