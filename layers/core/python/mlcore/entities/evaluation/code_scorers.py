"""A code scorer: a scorer that is the source of a Python function."""

from __future__ import annotations

from typing import NamedTuple


class CodeScorer(NamedTuple):
    name: str
    call_source: str
    """The body of the function, without its docstring."""
    call_signature: str
    """Its parameters in parentheses, e.g. ``(inputs, outputs)``."""
    original_func_name: str
    timeout: float
    """Seconds of one judgement; 0 is no limit of its own."""
    aggregations: tuple[str, ...]
    """Names of the statistics of its answers that an evaluation run logs."""
    of_sessions: bool
    """Whether it judges whole conversations, not single traces."""
    digest: str
    """Digest of its definition, the same for registered and unregistered scorers."""
