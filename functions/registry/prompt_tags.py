"""Distinguishes prompts from models: a prompt is a registered model with a certain tag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlcore import errors
from mlcore.limits.registry import TagFields
from mlcore.prompts import is_prompt


def are_prompt_tags(tags: Sequence[TagFields]) -> bool:
    """Returns whether a request's tags mark a prompt. If a tag's key is repeated, its last value
    counts."""
    return is_prompt({tag.key: tag.value for tag in tags})


def name_taken(
    name: str, holder: Mapping[str, str], newcomer: Mapping[str, str]
) -> errors.ResourceAlreadyExists:
    """Returns the error for a request to create a model or prompt whose name is in use. Models and
    prompts share one namespace; the message says which of both has the name.

    Args:
        holder: the tags of the model or prompt that has the name.
        newcomer: the tags of the model or prompt to create.
    """
    old = "Prompt" if is_prompt(holder) else "Registered Model"
    new = "Prompt" if is_prompt(newcomer) else "Registered Model"
    if old != new:
        return errors.ResourceAlreadyExists(
            f"Tried to create a {new.lower()} with name {name!r}, but the name is already taken "
            f"by a {old.lower()}. MLflow does not allow creating a model and a prompt with the "
            "same name."
        )
    return errors.ResourceAlreadyExists(f"{new} (name={name}) already exists.")
