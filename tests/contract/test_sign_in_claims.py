"""Claims in the forms in which common issuers document them, as a sign-in reads them."""

from __future__ import annotations

from typing import Any

import pytest

from mlcore.auth.claims import values_of
from mlcore.oidc.tokens import username_of

ENTRA: dict[str, Any] = {
    "aud": "6cb04018-a3f5-46a7-b995-940c78f5aef3",
    "iss": "https://login.microsoftonline.com/9122040d-6c67-4c5b-b112-36a304b66dad/v2.0",
    "name": "Abe Lincoln",
    "preferred_username": "abeli@example.com",
    "oid": "00000000-0000-0000-66f3-3332eca7ea81",
    "sub": "AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ",
    "tid": "9122040d-6c67-4c5b-b112-36a304b66dad",
    "groups": ["914c57df-2f61-4fb2-9a7c-3f1f7d0f5a6f"],
    "roles": ["MLflow.Admin"],
    "ver": "2.0",
}
MANY_GROUPS = {
    **{name: value for name, value in ENTRA.items() if name != "groups"},
    "_claim_names": {"groups": "src1"},
    "_claim_sources": {"src1": {"endpoint": "https://graph.example/users/x/getMemberObjects"}},
}
OKTA = {
    "sub": "00uid4BxXw6I6TV4m0g3",
    "iss": "https://example.okta.com",
    "email": "john.doe@example.com",
    "email_verified": True,
    "groups": ["Everyone", "data-science"],
    "amr": ["pwd"],
}
GOOGLE = {
    "iss": "https://accounts.google.com",
    "azp": "1234987819200.apps.googleusercontent.com",
    "sub": "10769150350006150715113082367",
    "email": "jsmith@example.com",
    "email_verified": True,
    "hd": "example.com",
}
COGNITO = {
    "sub": "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
    "cognito:groups": ["test-group-a"],
    "email_verified": True,
    "cognito:username": "my-test-user",
    "email": "my-test-user@example.com",
    "token_use": "id",
}
KEYCLOAK = {
    "sub": "b3a4c4f2-1c1d-4c5c-8d2e-0d6a6f1f2a3b",
    "typ": "ID",
    "email_verified": True,
    "preferred_username": "alice",
    "email": "alice@example.com",
    "groups": ["/data-science"],
    "realm_access": {"roles": ["offline_access", "mlflow-admins"]},
    "resource_access": {"mlflow": {"roles": ["editor"]}},
}


@pytest.mark.parametrize(
    ("claims", "name_claim", "name", "groups_claim", "groups"),
    [
        (ENTRA, "preferred_username", "abeli@example.com", "roles", ("MLflow.Admin",)),
        (ENTRA, "email", None, "groups", ("914c57df-2f61-4fb2-9a7c-3f1f7d0f5a6f",)),
        (MANY_GROUPS, "preferred_username", "abeli@example.com", "groups", ()),
        (OKTA, "email", "john.doe@example.com", "groups", ("Everyone", "data-science")),
        (GOOGLE, "email", "jsmith@example.com", "hd", ("example.com",)),
        (COGNITO, "email", "my-test-user@example.com", "cognito:groups", ("test-group-a",)),
        (KEYCLOAK, "email", "alice@example.com", "groups", ("/data-science",)),
        (
            *(KEYCLOAK, "preferred_username", "alice", "realm_access.roles"),
            ("offline_access", "mlflow-admins"),
        ),
        (KEYCLOAK, "email", "alice@example.com", "resource_access.mlflow.roles", ("editor",)),
        ({**OKTA, "email_verified": False}, "email", None, "groups.x", ()),
        ({**COGNITO, "email_verified": "false"}, "email", None, "missing", ()),
    ],
)
def test_claims(
    claims: dict[str, Any], name_claim: str, name: str, groups_claim: str, groups: tuple[str, ...]
) -> None:
    assert username_of(claims, name_claim) == name
    assert values_of(claims, groups_claim) == groups
