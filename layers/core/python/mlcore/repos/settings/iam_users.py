"""The setting ``iam_users``: user names by the ARNs of users and roles that sign requests. Unlike
the parameter ``IamUsers`` it has room for thousands; an environment of Lambda ends at 4 KB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mlcore.limits.settings import IAM_USERS
from mlcore.repos.settings.setting import Setting

SETTING: Final = IAM_USERS

_names: Setting[Mapping[str, str]] = Setting(SETTING, lambda value: value or {})


def names() -> Mapping[str, str]:
    """Returns the user names by ARN; one GetItem per minute and process."""
    return _names.current()
