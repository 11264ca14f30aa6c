"""Deletes a user with all of the user's grants, API keys and sign-in sessions."""

from __future__ import annotations

from mlcore.entities.users import Profile
from mlcore.repos.settings import system_tables_readers
from mlcore.repos.users import api_keys, scim_users, sessions, users


def delete_everything_of(profile: Profile, *, by_directory: bool = False) -> None:
    """Deletes a user with grants, API keys and sign-in sessions. The user is deleted last, so that
    a repeated request still finds the user and repeats all deletions.

    Args:
        by_directory: whether a directory (SCIM client) deletes the user, so that a login cannot
            create the user again soon (:func:`mlcore.repos.users.scim_users.forget`).
    """
    username = profile.user.username
    system_tables_readers.revoke(username)
    api_keys.delete_all(profile.user)
    sessions.end_all(username)
    scim_users.forget(profile.user, by_directory=by_directory)
    users.delete(profile)
