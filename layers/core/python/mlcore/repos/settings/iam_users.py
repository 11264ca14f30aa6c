"""The setting ``iam_users``: maps the ARNs of IAM users and roles that sign requests to user names.
Unlike the parameter ``IamUsers`` it has room for thousands of entries: the environment variables of
a Lambda function are limited to 4 KB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mlcore.limits.settings import IAM_USERS
from mlcore.repos.settings.cached_setting import Setting

SETTING: Final = IAM_USERS

_names: Setting[Mapping[str, str]] = Setting(SETTING, lambda value: value or {})


def names() -> Mapping[str, str]:
    """Returns the user names that the setting ``iam_users`` gives to IAM users and roles, by ARN;
    one GetItem per minute and process."""
    return _names.current()
