"""botocore's clients of the services that few functions call; DynamoDB, SQS and KMS are
reached by :mod:`mlcore.db.transport`."""

from __future__ import annotations

import functools
import time
from typing import Any

from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

from mlcore.db.signature import Keys
from mlcore.db.transport import IDLE_SECONDS


def make_client(service: str) -> Any:
    """A client with timeouts that leave a function time to answer. It costs 15 to 50 ms and several
    MB, so callers keep it."""
    import botocore.session  # noqa: PLC0415 -- 60 ms of a cold start, for what few calls need
    from botocore.config import Config  # noqa: PLC0415

    client = botocore.session.get_session().create_client(
        service,
        config=Config(
            connect_timeout=1,
            read_timeout=4,
            retries={"mode": "standard", "total_max_attempts": 3},
            tcp_keepalive=True,
            user_agent="mlflow-serverless",
        ),
    )
    forget_stale_connections(client)
    return client


def own_keys() -> Keys | None:
    """The credentials of this process at this moment, as botocore finds them; a function's are
    those of its role."""
    credentials = _session().get_credentials()
    if credentials is None:
        return None
    found = credentials.get_frozen_credentials()
    return Keys(found.access_key or "", found.secret_key or "", found.token)


@functools.cache
def _session() -> Any:
    """Kept, for it renews credentials that end."""
    import botocore.session  # noqa: PLC0415 -- as above

    return botocore.session.get_session()


def forget_stale_connections(client: Any) -> None:
    """Lets a client of botocore drop its connections when they have been idle for long, and at the
    first timeout, as :mod:`mlcore.db.transport` does: those that went dead without a word would
    cost a timeout each."""
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
