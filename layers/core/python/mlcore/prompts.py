"""What tells a prompt from a registered model: a tag, on the model and on its versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

IS_PROMPT: Final = "mlflow.prompt.is_prompt"


def is_prompt(tags: Mapping[str, str]) -> bool:
    """Whether something with these tags is a prompt. Searches ask for the exact value instead."""
    return tags.get(IS_PROMPT, "false").lower() == "true"
