"""Stores with which account of an OpenID Connect issuer each user signs in, and which roles the
account's groups give to the user.

A user name belongs to the first account that signs in under it: e-mail addresses are given to other
people, and another issuer may use the same name for somebody else. An administrator who deletes the
user frees the name.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.entities.users import Account, Profile, SignIn, User
from mlcore.ids import now_ms
from mlcore.models.users import SignIn as SignInItem
from mlcore.repos.users import roles


class OtherAccount(Exception):
    """Raised if another account of an OpenID issuer signs in under this user name."""


def find(user: User) -> SignIn | None:
    """Returns the account with which a user signs in, with its roles; None for a user who never
    signed in."""
    raw = table.get(keys.sign_in(user.username))
    if raw is None or (item := SignInItem.of(raw)).user_id != user.user_id:
        return None
    return SignIn(Account(item.issuer, item.subject), frozenset(json.loads(item.role_ids)))


def apply(profile: Profile, account: Account, wanted: Iterable[int]) -> None:
    """Binds a user to an account of an OIDC issuer, assigns the roles that follow from the
    account's groups, and removes those that its former groups gave. Roles that an administrator
    assigned stay. Repeating the call completes an interrupted one.

    Args:
        wanted: the ids of the roles that follow from the account's groups.

    Raises:
        OtherAccount: the user name belongs to another account.
    """
    user, wanted = profile.user, frozenset(wanted)
    before = find(user)
    if before is not None and before.account != account:
        raise OtherAccount
    given = frozenset() if before is None else before.role_ids
    new = wanted - frozenset(profile.role_ids)
    # The roles are recorded before they are assigned, so that after an interrupted sign-in the next
    # one can remove them.
    if before is None or not new <= given:
        _put(user, account, given | new)
    for role_id in sorted(new):
        with contextlib.suppress(roles.AlreadyAssigned):
            roles.assign(user, role_id)
    gone = given - wanted
    for role_id in sorted(gone):
        with contextlib.suppress(roles.NotAssigned):
            roles.unassign(user, role_id)
    if gone:
        _put(user, account, (given | new) - gone)


def _put(user: User, account: Account, role_ids: frozenset[int]) -> None:
    key = keys.sign_in(user.username)
    item = SignInItem(
        PK=key.pk,
        SK=key.sk,
        username=user.username,
        user_id=user.user_id,
        issuer=account.issuer,
        subject=account.subject,
        role_ids=json.dumps(sorted(role_ids)),
        updated_at=now_ms(),
    )
    # Of two accounts that sign in at the same moment, one wins.
    mine = ConditionExpression()
    mine.require_absent_or_equal(SignInItem.issuer, account.issuer)
    mine.require_absent_or_equal(SignInItem.subject, account.subject)
    former = ConditionExpression()
    former.require_absent_or_other(SignInItem.user_id, user.user_id)
    try:
        table.put(item.serialize(), mine)
    except ConditionFailed:
        try:
            table.put(item.serialize(), former)
        except ConditionFailed as failed:
            raise OtherAccount from failed
