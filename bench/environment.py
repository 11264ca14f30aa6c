"""Sets environment variables that AWS's clients and the product need, unless they are set."""

from __future__ import annotations

import os

from tests.engines import REGION


def stand_alone() -> None:
    """Sets dummy credentials and a region, which engines on this machine do not check."""
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        os.environ.setdefault(variable, "test")
    for variable in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        os.environ.setdefault(variable, REGION)
