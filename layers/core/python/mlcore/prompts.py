"""Distinguishes prompts from registered models. Both are stored as registered models; a tag marks
prompts and their versions.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlcore import reserved_tags


def is_prompt(tags: Mapping[str, str]) -> bool:
    """Whether a model or version with these tags is a prompt. (Searches compare the tag's value
    exactly instead.)"""
    return tags.get(reserved_tags.IS_PROMPT, "false").lower() == "true"
