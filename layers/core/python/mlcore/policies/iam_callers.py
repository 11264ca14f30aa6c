"""Callers who sign requests with AWS credentials. Their user name is their ARN, or the name that
the settings map it to.

An assumed role signs as ``arn:aws:sts::<account>:assumed-role/<role>/<session>``. The settings may
name it by the ARN of its role, which covers all of its sessions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from mlcore.policies.access import Access
from mlcore.repos.settings import iam_users
from mlcore.repos.users import users

_ASSUMED: Final = re.compile(r"arn:([\w-]+):sts::(\d+):assumed-role/([^/]+)/.+")


def signed_caller(identity: Mapping[str, Any], workspace: str) -> Access | None:
    """Returns the caller whose AWS signature API Gateway has checked; None for a request without
    one. The first request of a caller creates the user.

    Args:
        identity: ``requestContext.authorizer.iam``.
    """
    arn = str(identity.get("userArn") or "")
    if not arn:
        return None
    arns = [arn, *_role_arn(arn)]
    parameter = dict(entry.split("=", 1) for entry in _setting_entries("IAM_USERS") if "=" in entry)
    usernames = {**parameter, **iam_users.names()}
    username = next((usernames[name] for name in arns if usernames.get(name)), arn)
    is_administrator = not set(arns).isdisjoint(_setting_entries("IAM_ADMINISTRATORS"))
    user = users.ensure(username)
    return Access(username, is_administrator or user.is_admin, workspace, by_password=False)


def is_iam_administrator(username: str) -> bool:
    """Whether the setting ``IAM_ADMINISTRATORS`` lists an IAM identity that has this user name."""
    administrators = _setting_entries("IAM_ADMINISTRATORS")
    if not administrators:
        return False
    parameter = dict(entry.split("=", 1) for entry in _setting_entries("IAM_USERS") if "=" in entry)
    mapped = {**parameter, **iam_users.names()}
    arns = [username, *_role_arn(username), *(arn for arn in mapped if mapped[arn] == username)]
    return not set(arns).isdisjoint(administrators)


def _role_arn(arn: str) -> list[str]:
    """Returns a list with the ARN of the role of an assumed-role session; an empty list for other
    ARNs. Neither ARN contains the role's path."""
    match = _ASSUMED.fullmatch(arn)
    return [f"arn:{match[1]}:iam::{match[2]}:role/{match[3]}"] if match else []


def _setting_entries(name: str) -> list[str]:
    return [entry.strip() for entry in os.environ.get(name, "").split(",") if entry.strip()]
