"""Runs the code of one scorer on one trace or one session (the traces of a conversation): a Lambda
function of its own, whose role permits only its log group. The judge runner invokes it.

Lambda offers no namespaces, so the scorer's process is confined by the system call filter alone,
beside limits of memory and time. Each call checks that Lambda permits the filter. If it does not,
the scorer is not run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from mlcore.environment import in_lambda
from mlcore.observability import logger
from mlcore.scorer_cage import cage
from mlcore.scorer_cage.cage import CageLimits
from mlcore.scorer_cage.syscalls import NoCage, set_dumpable

_CREDENTIALS: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
)
_MIB: Final = 1024 * 1024
_MEMORY: Final = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE"
_OWN_MIB: Final = 256
"""Memory reserved for the function itself, so that a scorer runs out of memory before it does."""
_LEAST_MIB: Final = 128


def handler(event: Mapping[str, Any], _context: Any) -> dict[str, Any]:
    """Runs a scorer in a confined process.

    Args:
        event: ``scorer`` and ``call`` of :func:`mlcore.scorer_cage.cage.judge`, and ``seconds``,
            after which the process is ended.

    Returns:
        The fields of a :class:`~mlcore.scorer_cage.cage.Judgement`; or ``unavailable`` with the
        reason, if Lambda does not permit to confine a process.
    """
    limits = CageLimits(
        float(event["seconds"]),
        _memory_bytes(),
        namespaces=False,
        packages=cage.allowed_packages(),
    )
    try:
        if in_lambda():
            _hide_credentials()
        judgement = cage.judge(event["scorer"], event["call"], limits)
    except (cage.CageUnavailable, NoCage) as missing:
        logger.warning("no cage for a scorer", extra={"reason": str(missing)})
        return {"unavailable": str(missing)}
    return {
        "feedback": [feedback._asdict() for feedback in judgement.feedback],
        "failure": judgement.failure,
        "wall_ms": judgement.wall_ms,
        "cpu_ms": judgement.cpu_ms,
    }


def _memory_bytes() -> int:
    """Returns how many bytes of memory a scorer may use: the function's memory without the part
    reserved for the function itself, at least 128 MiB and at most the limit on a laptop."""
    mib = int(os.environ.get(_MEMORY) or 1024) - _OWN_MIB
    return min(max(mib, _LEAST_MIB) * _MIB, cage.MEMORY_BYTES)


def _hide_credentials() -> None:
    """Removes the role's credentials from the environment, and forbids processes of this user to
    read this process's memory. The filter prevents both already; this is a second barrier."""
    for name in _CREDENTIALS:
        os.environ.pop(name, None)
    set_dumpable(False)
