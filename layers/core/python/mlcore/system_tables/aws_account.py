"""The AWS account of the rows of the system tables, in their column ``account_id``."""

from __future__ import annotations

import os
from typing import Final

ACCOUNT: Final = "ACCOUNT_ID"
"""Environment: the id of the AWS account; a laptop has none."""
LOCAL_ACCOUNT: Final = "000000000000"


def account_id() -> str:
    """Returns the id of the AWS account in which this runs; :data:`LOCAL_ACCOUNT` on a laptop."""
    return os.environ.get(ACCOUNT) or LOCAL_ACCOUNT
