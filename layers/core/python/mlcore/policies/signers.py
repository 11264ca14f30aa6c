"""Callers who sign their requests for AWS: their ARNs are their names, or what they are mapped to.

An assumed role signs as ``arn:aws:sts::<account>:assumed-role/<role>/<session>``. It may be named
in the settings by the ARN of its role, for all of its sessions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from mlcore.policies.access import Access
from mlcore.repos.users import users

_ASSUMED: Final = re.compile(r"arn:([\w-]+):sts::(\d+):assumed-role/([^/]+)/.+")


def signer(about: Mapping[str, Any], workspace: str) -> Access | None:
    """The caller whose signature API Gateway has checked; a user from the first request on.

    Args:
        about: ``requestContext.authorizer.iam``.
    """
    arn = str(about.get("userArn") or "")
    if not arn:
        return None
    arns = [arn, *_role(arn)]
    named = dict(entry.split("=", 1) for entry in _listed("IAM_USERS") if "=" in entry)
    username = next((named[each] for each in arns if named.get(each)), arn)
    administrates = not set(arns).isdisjoint(_listed("IAM_ADMINISTRATORS"))
    user = users.ensure(username)
    return Access(username, administrates or user.is_admin, workspace, by_password=False)


def _role(arn: str) -> list[str]:
    """The ARN of the role that a session is of; a path that the role has is not in either."""
    found = _ASSUMED.fullmatch(arn)
    return [f"arn:{found[1]}:iam::{found[2]}:role/{found[3]}"] if found else []


def _listed(name: str) -> list[str]:
    return [entry.strip() for entry in os.environ.get(name, "").split(",") if entry.strip()]
