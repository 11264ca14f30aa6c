"""Computes what a call of a Lambda function costs at AWS's list prices."""

from __future__ import annotations

import math
from typing import Final

from mlcore.prices import aws

_MIB_OF_GB: Final = 1024


def dollars(seconds: float, memory_mib: int, *, arm: bool) -> float:
    """Returns the price in US dollars of one call of a Lambda function: for its memory during the
    call, in whole milliseconds begun, and for the invocation itself."""
    counted = math.ceil(seconds * 1000) / 1000
    of_gb_second = aws.GB_SECOND if arm else aws.GB_SECOND_X86
    return aws.INVOCATION + counted * memory_mib / _MIB_OF_GB * of_gb_second
