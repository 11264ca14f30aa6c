"""Processes in which the judge runner runs code scorers: a server that stops does not wait for
them."""

from __future__ import annotations

import sys


def stop() -> None:
    """Ends them, if any have run. Their jobs pause, and continue after the next start."""
    cage = sys.modules.get("mlcore.scorer_cage.cage")
    if cage is not None:
        cage.stop_all()
