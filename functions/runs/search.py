"""Searching runs."""

from __future__ import annotations

from typing import Any

from mlcore.auth.permissions import RUN
from mlcore.http import Request
from mlcore.queries import runs
from runs import messages as m


def search_runs(message: m.SearchRuns, request: Request) -> dict[str, Any]:
    return runs.search(
        request.workspace,
        message.experiment_ids,
        message.filter,
        message.run_view_type or "ACTIVE_ONLY",
        message.max_results,
        message.order_by,
        message.page_token,
        request.may_read(RUN),
        runs.as_text,
    )
