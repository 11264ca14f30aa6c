"""What AWS's clients and the product ask of the environment, where nobody has set it."""

from __future__ import annotations

import os

from tests.engines import REGION


def stand_alone() -> None:
    """An account and a region, which engines on this machine do not look at."""
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        os.environ.setdefault(variable, "test")
    for variable in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        os.environ.setdefault(variable, REGION)
