"""What probes of Kubeflow's ask."""

from __future__ import annotations

import json

from kubeflow.answers import JSON
from mlcore.http import Request, Response


def health(_asked: None, request: Request) -> Response:
    return Response(200, json.dumps({"status": "pass"}), JSON)


def is_dirty(_asked: None, request: Request) -> Response:
    """Whether a migration of the schema is half done: there are none."""
    return Response(200, "false", JSON)
