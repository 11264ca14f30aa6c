"""How a scorer judges by itself, and how far those of an experiment have come."""

from __future__ import annotations

from typing import NamedTuple


class OnlineScorer(NamedTuple):
    config_id: str
    """MLflow's id of the configuration; another one after each change."""
    workspace: str
    experiment_id: str
    name: str
    scorer_id: str
    sample_rate: float
    """From 0 to 1."""
    filter_string: str | None
    """Of a search of traces; None: all."""
    since: int
    """Traces of this time and later, in milliseconds since the epoch."""


class Progress(NamedTuple):
    """The last trace that the scorers of an experiment were given."""

    trace_time: int
    trace_id: str
    version: int
    """Of the item that it was read from; 0: it is new."""
