"""Searches runs by a filter and an order, and returns pages."""

from __future__ import annotations

from typing import Any

from mlcore.auth.permissions import RUN
from mlcore.http import Request
from mlcore.repos.runs.search import run_pages
from runs import messages as m


def search_runs(message: m.SearchRuns, request: Request) -> dict[str, Any]:
    return run_pages.search(
        request.workspace,
        message.experiment_ids,
        message.filter,
        message.run_view_type or "ACTIVE_ONLY",
        message.max_results,
        message.order_by,
        message.page_token,
        request.may_read(RUN),
        run_pages.as_text,
    )
