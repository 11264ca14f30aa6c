"""Distinguishes prompts from registered models by a tag on the model and on its versions."""

from __future__ import annotations

from collections.abc import Mapping

from mlcore import reserved_tags


def is_prompt(tags: Mapping[str, str]) -> bool:
    """Whether something with these tags is a prompt. Searches ask for the exact value instead."""
    return tags.get(reserved_tags.IS_PROMPT, "false").lower() == "true"
