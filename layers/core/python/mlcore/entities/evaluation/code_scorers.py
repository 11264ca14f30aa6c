"""Scorers that consist of the Python source code of a function, and ensembles of such scorers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

MAX_SECONDS: Final = 300.0
"""Longest time of one judgement, as long as MLflow gives a scorer without a timeout of its own. NAT
gateways and interface endpoints drop connections that are idle for 350 seconds, and one is idle
while a scorer runs in AWS."""


class CodeScorer(NamedTuple):
    name: str
    call_source: str
    """The body of the function, without its docstring; empty for an ensemble."""
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
    ensemble_function: str = ""
    """How an ensemble combines the values of its scorers, e.g. ``majority_vote``."""
    scorers: tuple[CodeScorer, ...] = ()
    """The scorers of an ensemble."""

    def seconds(self) -> float:
        """Returns the time limit of one judgement, in seconds."""
        return min(self.timeout or MAX_SECONDS, MAX_SECONDS)

    def in_the_cage(self) -> dict[str, Any]:
        """Returns the scorer as JSON for :func:`mlcore.scorer_cage.cage.judge`, which runs it in a
        process without rights."""
        parts = self._parts()
        return {**parts, "source_digest": source_digest(parts)}

    def _parts(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "call_source": self.call_source,
            "call_signature": self.call_signature,
            "original_func_name": self.original_func_name,
            "ensemble_function": self.ensemble_function,
            "scorers": [scorer._parts() for scorer in self.scorers],
        }


def source_digest(parts: Mapping[str, Any]) -> str:
    """Returns the SHA-256 digest of a scorer's JSON (:meth:`CodeScorer.in_the_cage`). The process
    that runs the scorer compares it with the field ``source_digest``."""
    digested = {name: value for name, value in parts.items() if name != "source_digest"}
    return hashlib.sha256(json.dumps(digested, sort_keys=True).encode()).hexdigest()
