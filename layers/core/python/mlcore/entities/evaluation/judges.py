"""A judge: what of a scorer a server can run, for a model does the judging."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

INPUTS: Final = "inputs"
OUTPUTS: Final = "outputs"
EXPECTATIONS: Final = "expectations"
TRACE: Final = "trace"
CONVERSATION: Final = "conversation"
VARIABLES: Final = (INPUTS, OUTPUTS, TRACE, EXPECTATIONS, CONVERSATION)
"""What instructions may name as ``{{ inputs }}``."""


class Judge(NamedTuple):
    name: str
    model: str
    """Such as ``gateway:/endpoint``; "" for a built-in one to which none was given."""
    instructions: str
    """With variables; "" of a built-in one, which has its own."""
    variables: tuple[str, ...]
    """Those of the instructions, in their order."""
    value: Mapping[str, Any]
    """JSON Schema of what it answers."""
    rationale_first: bool
    inference_params: Mapping[str, Any]
    aggregations: tuple[str, ...]
    """What a run of evaluation says of many answers."""
    of_sessions: bool
    """Whether it judges whole conversations, not single traces."""
    builtin: str
    """The class of a built-in one, else "". """
    settings: Mapping[str, Any]
    """What else a built-in one was given, such as guidelines."""
    digest: str
    """Of its definition, the same whether or not it is registered."""
