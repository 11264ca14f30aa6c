"""Tells prompts from registered models: both are stored as models, and prompts and their versions
have a tag.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlcore import reserved_tags


def is_prompt(tags: Mapping[str, str]) -> bool:
    """Whether a model or version with these tags is a prompt. (Searches compare the tag's value
    exactly instead.)"""
    return tags.get(reserved_tags.IS_PROMPT, "false").lower() == "true"
