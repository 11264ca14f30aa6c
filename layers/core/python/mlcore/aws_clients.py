"""Creates botocore clients for services that few functions use. DynamoDB, SQS and KMS are called
through :mod:`mlcore.db.transport`."""

from __future__ import annotations

import functools
import time
from typing import Any

from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

from mlcore.db.signature import Credentials
from mlcore.db.transport import IDLE_SECONDS


def create_client(service: str, read_seconds: float = 4, attempts: int = 3) -> Any:
    """Returns a botocore client with short timeouts. Creating a client takes 15 to 50 ms and
    several MB, so callers keep it.

    Args:
        read_seconds: the read timeout: an attempt fails if no data arrives for so many seconds.
        attempts: maximum number of attempts of a call whose failure may be temporary.
    """
    import botocore.session  # noqa: PLC0415 -- 60 ms at cold start, needed by few calls
    from botocore.config import Config  # noqa: PLC0415

    client = botocore.session.get_session().create_client(
        service,
        config=Config(
            connect_timeout=1,
            read_timeout=read_seconds,
            retries={"mode": "standard", "total_max_attempts": attempts},
            tcp_keepalive=True,
            user_agent="mlflow-serverless",
        ),
    )
    close_stale_connections(client)
    return client


def process_credentials() -> Credentials | None:
    """Returns the AWS credentials that this process has now (on Lambda, those of the function's
    role), or None."""
    credentials = _session().get_credentials()
    if credentials is None:
        return None
    frozen = credentials.get_frozen_credentials()
    return Credentials(frozen.access_key or "", frozen.secret_key or "", frozen.token)


@functools.cache
def _session() -> Any:
    """Returns botocore's session. It is kept for the process, because it renews expiring
    credentials."""
    import botocore.session  # noqa: PLC0415 -- as above

    return botocore.session.get_session()


def close_stale_connections(client: Any) -> None:
    """Makes a botocore client close its connections after a timeout or a long idle time, because
    each dead connection would cost another timeout. :mod:`mlcore.db.transport` does the same."""
    used = [time.time(), time.monotonic()]

    def before_a_request(**_: Any) -> None:
        before, used[:] = tuple(used), (time.time(), time.monotonic())
        if not 0 <= used[0] - before[0] <= IDLE_SECONDS or used[1] - before[1] > IDLE_SECONDS:
            client.close()  # it opens new ones

    def after_a_request(caught_exception: Exception | None = None, **_: Any) -> None:
        if isinstance(caught_exception, ConnectTimeoutError | ReadTimeoutError):
            client.close()

    client.meta.events.register_first("before-send", before_a_request)
    client.meta.events.register_first("needs-retry", after_a_request)
