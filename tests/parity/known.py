"""What differs from MLflow's server on purpose, with the reasons."""

from __future__ import annotations

import re
from typing import Final

NOT_SERVED: Final = (
    (r"/assistant/", "MLflow's assistant runs a command-line program on the server's machine."),
    (
        r"^POST /ajax-api/3\.0/jobs/$",
        "The route starts any job function of MLflow's server by its name; no client calls it.",
    ),
    (
        r"/(get-online-trace-details|unified-traces)$",
        "Declared only: MLflow's own server answers 404.",
    ),
    (
        r"/2\.0mlflow/",
        "A misspelt path of MLflow's server (a slash is missing); the correct path is served.",
    ),
    (
        r"^GET /(build/\{\}|static-files/\{\}|)$",
        "The web UI's files: `local/http`, CloudFront in AWS.",
    ),
    (
        r"^POST /gateway/typesafe/",
        "The AI gateway does not call the provider TypeSafe, whose API `/gateway/typesafe` offers.",
    ),
)
"""Routes of MLflow's server that have no counterpart: pattern of ``METHOD path``, reason."""

NOT_NEEDED: Final = (
    ("columns", r"", "The table is one of DynamoDB."),
    ("environment variables", r"", "Of MLflow's own server and client."),
)
"""Surfaces whose changes need no counterpart by themselves: surface, pattern of names, reason."""


def reason(surface: str, name: str) -> str:
    """Returns why something of a surface has no counterpart; an empty text if nobody knows."""
    known = (
        NOT_SERVED
        if surface == "routes"
        else tuple((pattern, why) for of, pattern, why in NOT_NEEDED if of == surface)
    )
    return next((why for pattern, why in known if re.search(pattern, name)), "")
