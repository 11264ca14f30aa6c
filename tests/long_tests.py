"""Tests of minutes: ``make test`` leaves them out, ``make test-long`` runs them alone, each night
and before a release. A call of pytest without these targets runs whatever it names.
"""

from __future__ import annotations

import os
from typing import Final

WHICH: Final = os.environ.get("LONG_TESTS", "with")
"""``without`` them, them ``only``, or ``with`` them."""

LONG: Final = {
    "tests/browser/test_crawl.py": "all pages of MLflow's UI; test_pages.py opens the main ones",
    "tests/contract/test_no_crash.py": "4,200 random requests to 176 routes",
    "tests/e2e/test_gateway_limits.py::test_many_processes": "sixteen, each limit in one minute",
    "tests/e2e/test_offline_folder.py::test_a_folder_of_runs": "kills at every stage of a push",
    "tests/e2e/test_round_trip.py": "from stock and back; test_export.py compares the way out",
}
"""Beginnings of node ids, and what they do."""


def is_left_out(nodeid: str) -> bool:
    """Whether this run of pytest leaves a test out."""
    is_long = nodeid.startswith(tuple(LONG))
    return WHICH == "without" if is_long else WHICH == "only"
