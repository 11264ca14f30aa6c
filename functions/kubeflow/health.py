"""Answers the health probes of Kubeflow's API."""

from __future__ import annotations

import json

from mlcore.http import Request, Response
from mlcore.http.kubeflow_responses import JSON


def health(_parsed: None, request: Request) -> Response:
    return Response(200, json.dumps({"status": "pass"}), JSON)


def is_dirty(_parsed: None, request: Request) -> Response:
    """Answers Kubeflow's question whether a migration of the database schema was interrupted:
    always ``false``, because there are no migrations."""
    return Response(200, "false", JSON)
