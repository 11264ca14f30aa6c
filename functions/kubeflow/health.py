"""What probes of Kubeflow's ask."""

from __future__ import annotations

import json

from kubeflow.answers import JSON
from mlcore.http import Request, Response


def health(request: Request) -> Response:
    return Response(200, json.dumps({"status": "pass"}), JSON)


def is_dirty(request: Request) -> Response:
    """Whether a migration of the schema is half done: there are none."""
    return Response(200, "false", JSON)
