"""Lifecycle stages of experiments, runs and logged models, by MLflow's names."""

from __future__ import annotations

ACTIVE = "active"
DELETED = "deleted"
VIEW_STAGES = {
    "ACTIVE_ONLY": (ACTIVE,),
    "DELETED_ONLY": (DELETED,),
    "ALL": (ACTIVE, DELETED),
}
"""The lifecycle stages that each of MLflow's view types includes."""
