"""Online scorers: settings of scorers that judge new traces automatically, and their progress in an
experiment.
"""

from __future__ import annotations

from typing import NamedTuple


class OnlineScorer(NamedTuple):
    config_id: str
    """MLflow's id of the configuration; it changes with every update."""
    workspace: str
    experiment_id: str
    name: str
    scorer_id: str
    sample_rate: float
    """From 0 to 1."""
    filter_string: str | None
    """A trace search filter that selects the traces; None: all."""
    since: int
    """Only traces from this time on are judged; in milliseconds since the epoch."""
    owner: str | None = None
    """The user with whose rights it judges: the one who last saved these settings with a rate above
    0. None without a login, and in settings that release 0.1.0 wrote."""
    owner_id: int | None = None
    """The number of the owner, which a later user of the same name does not have."""
    endpoint_id: str | None = None
    """The gateway endpoint of the scorer as the owner knew it; None for code."""
    seal: str | None = None
    """The seal of the version whose code the owner let run; None for a judge."""


class ScoringProgress(NamedTuple):
    """The last trace that was given to an experiment's online scorers."""

    trace_time: int
    trace_id: str
    version: int
    """Version of the stored item; 0 before it is stored."""
