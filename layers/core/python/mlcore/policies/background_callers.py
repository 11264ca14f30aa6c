"""Users in whose name the server acts without a request of theirs, such as the owner of a
schedule."""

from __future__ import annotations

from mlcore.policies.access import Access
from mlcore.policies.iam_callers import is_iam_administrator
from mlcore.repos.users import users


def absent_caller(username: str, user_id: int | None, workspace: str) -> Access | None:
    """Returns the current rights of a user; None if there is no user with this name and number, or
    if the directory has deactivated the user. One consistent GetItem; the cached setting
    ``iam_users`` if ``IAM_ADMINISTRATORS`` is set.

    Args:
        user_id: the user's number, which distinguishes the user from a later one of the same name.
            None if it is not known; then the name alone decides.
    """
    user = users.find(username)
    if user is None or not user.is_active or user_id not in (None, user.user_id):
        return None
    is_administrator = user.is_admin or is_iam_administrator(username)
    return Access(username, is_administrator, workspace, by_password=False)
