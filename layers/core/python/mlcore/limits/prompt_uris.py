"""URIs of prompts, such as ``prompts:/name@alias``."""

from __future__ import annotations

from typing import NamedTuple

from mlcore.errors import InvalidParameterValue


class PromptUri(NamedTuple):
    """The prompt version that a URI names: by number, or by alias."""

    name: str
    version: int | None
    alias: str | None


def parse_prompt_uri(uri: str) -> PromptUri:
    """Returns the prompt that a text names: ``prompts:/name/version``, ``prompts:/name@alias``, or
    a name alone, which means the latest version. Raises InvalidParameterValue."""
    if not uri.startswith("prompts:/"):
        return PromptUri(uri, None, "latest")
    parts = uri.removeprefix("prompts:/").lstrip("/").split("/")
    name, _, suffix = parts[0].rpartition("@") if len(parts) == 1 else (parts[0], "", parts[1])
    if len(parts) > 2 or not name.strip() or not suffix.strip():
        raise _improper(uri)
    if len(parts) == 1:
        return PromptUri(name, None, suffix)
    if not (suffix.isascii() and suffix.isdigit() and len(suffix) < 19):
        raise _improper(uri)
    return PromptUri(name, int(suffix), None)


def _improper(uri: str) -> InvalidParameterValue:
    return InvalidParameterValue(
        f"Not a proper prompts:/ URI: {uri}. Prompt URIs must be of the form "
        "'prompts:/name/version' or 'prompts:/name@alias'."
    )
