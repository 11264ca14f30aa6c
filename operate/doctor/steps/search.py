"""Checks that searches of runs see a write as soon as it is acknowledged."""

from __future__ import annotations

from operate.doctor.checkup_state import Checkup, expect

FILTERS = {
    "metrics.loss < 1 AND params.p3 = '3'": True,
    "tags.t1 = '1'": True,
    "attributes.run_name = 'doctor'": True,
    "metrics.loss > 1": False,
}
"""Filters, each with whether the checkup's run meets it."""


def search_at_once(checkup: Checkup) -> str:
    """Checks immediately after the checkup's run was written that searches with several filters
    have the right results. Returns the result as a text; raises Wrong, or LeftOut if an earlier
    step failed."""
    check(checkup, checkup.fact("run"))
    return f"{len(FILTERS)} filters answered exactly, at once"


def check(checkup: Checkup, run_id: str) -> None:
    """Searches the runs of ``doctor``'s experiment with each of :data:`FILTERS`. Raises Wrong if
    the run ``run_id`` is in a result that should not contain it, or missing from one that
    should."""
    experiments = [checkup.fact("experiment")]
    for text, meets in FILTERS.items():
        page = checkup.api.post(
            "runs/search", experiment_ids=experiments, filter=text, order_by=["metrics.loss ASC"]
        )
        runs = [run["info"]["run_id"] for run in page.get("runs", ())]
        expect((run_id in runs) is meets, f"{text!r} finds {runs}")
