"""botocore's clients of the services that few functions call; DynamoDB has its own transport."""

from __future__ import annotations

from typing import Any

import botocore.session
from botocore.config import Config


def make_client(service: str) -> Any:
    """A client with timeouts that leave a function time to answer. It costs 15 to 50 ms and several
    MB, so callers keep it."""
    return botocore.session.get_session().create_client(
        service,
        config=Config(
            connect_timeout=1,
            read_timeout=4,
            retries={"mode": "standard", "total_max_attempts": 3},
            tcp_keepalive=True,
            user_agent="mlflow-serverless",
        ),
    )
