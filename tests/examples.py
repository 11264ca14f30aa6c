"""How many examples the tests of properties take: `make test` a third of the usual number, `make
test-long` all of them and more."""

from __future__ import annotations

import os
from typing import Final

MULTIPLE: Final = int(os.environ.get("PROPERTY_EXAMPLES", "0"))
"""Of the usual number; 0 takes a third."""


def number_of(usual: int) -> int:
    return usual * MULTIPLE if MULTIPLE else max(5, usual // 3)
