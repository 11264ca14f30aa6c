"""What issue detection searches for in an experiment: instructions and categories, from the tag in
which MLflow's UI stores them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from mlcore.entities.evaluation.issue_detection import (
    CATEGORIES,
    MAX_CATEGORIES,
    MAX_CATEGORY_LENGTH,
    MAX_INSTRUCTIONS_LENGTH,
)
from mlcore.wire.json_text import parse_json_text

PRIORITIES_TAG: Final = "mlflow.issueDetection.priorities"


class Priorities(NamedTuple):
    categories: tuple[str, ...]
    instructions: str


def parse_priorities(text: str | None) -> Priorities:
    """Returns what issue detection searches for, from an experiment's tag such as
    ``{"instructions": "Refunds matter most.", "categories": {"latency": true}}``. Without a
    category that is true, all of MLflow's categories count. Values beyond the limits of a request
    are cut off or ignored."""
    try:
        values = parse_json_text(text or "null")
    except ValueError:
        values = None
    if not isinstance(values, dict):
        return Priorities(tuple(CATEGORIES), "")
    instructions = values.get("instructions")
    return Priorities(
        _categories(values.get("categories")) or tuple(CATEGORIES),
        instructions[:MAX_INSTRUCTIONS_LENGTH] if isinstance(instructions, str) else "",
    )


def _categories(values: Any) -> tuple[str, ...]:
    if not isinstance(values, dict):
        return ()
    chosen: dict[str, bool] = {}
    for name, is_chosen in values.items():
        if isinstance(is_chosen, bool) and 0 < len(name.strip()) <= MAX_CATEGORY_LENGTH:
            chosen[name.strip()] = is_chosen
    return tuple(name for name, is_chosen in chosen.items() if is_chosen)[:MAX_CATEGORIES]
