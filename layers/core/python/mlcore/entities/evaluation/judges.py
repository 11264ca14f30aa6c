"""A judge: a scorer that this server can run by asking a model, or by a rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

INPUTS: Final = "inputs"
OUTPUTS: Final = "outputs"
EXPECTATIONS: Final = "expectations"
TRACE: Final = "trace"
CONVERSATION: Final = "conversation"
VARIABLES: Final = (INPUTS, OUTPUTS, TRACE, EXPECTATIONS, CONVERSATION)
"""Names that instructions may contain, as in ``{{ inputs }}``."""


REGEX_RULE: Final = "RegexMatch"
PII_RULE: Final = "PIIDetection"
LENGTH_RULE: Final = "ResponseLength"
RULES: Final = frozenset((REGEX_RULE, PII_RULE, LENGTH_RULE))
"""The built-in scorers that ask no model."""
PII_KINDS: Final = ("email", "phone", "ssn", "credit_card", "ip_address")
"""The kinds of personal data that ``PIIDetection`` knows."""


class Judge(NamedTuple):
    name: str
    model: str
    """E.g. ``gateway:/endpoint``; "" for a built-in judge without a given model."""
    instructions: str
    """The template with variables; "" for a built-in judge, which has its own."""
    variables: tuple[str, ...]
    """The variables in the instructions, in order of appearance."""
    value: Mapping[str, Any]
    """JSON Schema of its answer."""
    rationale_first: bool
    inference_params: Mapping[str, Any]
    aggregations: tuple[str, ...]
    """Names of the statistics of its answers that an evaluation run logs."""
    of_sessions: bool
    """Whether it judges whole conversations, not single traces."""
    builtin: str
    """The class of a built-in judge; otherwise empty."""
    settings: Mapping[str, Any]
    """Further parameters of a built-in judge, such as guidelines."""
    digest: str
    """Digest of its definition, the same for registered and unregistered scorers."""

    @property
    def asks_model(self) -> bool:
        """Whether the judge calls a model. If not, :mod:`mlcore.judges.rule_scorers` rates
        instead."""
        return self.builtin not in RULES
