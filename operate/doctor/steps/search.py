"""Searches of runs, which know a write as soon as it is acknowledged."""

from __future__ import annotations

from operate.doctor.checkup import Checkup, expect

FILTERS = {
    "metrics.loss < 1 AND params.p3 = '3'": True,
    "tags.t1 = '1'": True,
    "attributes.run_name = 'doctor'": True,
    "metrics.loss > 1": False,
}
"""Filters, and whether the checkup's run meets them."""


def search_at_once(checkup: Checkup) -> str:
    """Searches answer exactly, without waiting for an index."""
    check(checkup, checkup.fact("run"))
    return f"{len(FILTERS)} filters answered exactly, at once"


def check(checkup: Checkup, run_id: str) -> None:
    """Searches by each filter. Raises Wrong if the run is in an answer where it should not be, or
    missing where it should be."""
    experiments = [checkup.fact("experiment")]
    for text, meets in FILTERS.items():
        found = checkup.api.post(
            "runs/search", experiment_ids=experiments, filter=text, order_by=["metrics.loss ASC"]
        )
        runs = [one["info"]["run_id"] for one in found.get("runs", ())]
        expect((run_id in runs) is meets, f"{text!r} finds {runs}")
