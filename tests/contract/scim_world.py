"""A directory that provisions: calls the product's SCIM routes as API Gateway would, and knows no
rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import pytest

import users.app
from mlcore.db import capacity
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from tests.contract.api import Answer
from tests.contract.logins import ADMIN
from users.scim.errors import ERROR_FORMAT

SCIM_JSON: Final = "application/scim+json"
PATCH_OP: Final = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
CORE_USER: Final = "urn:ietf:params:scim:schemas:core:2.0:User"
CORE_GROUP: Final = "urn:ietf:params:scim:schemas:core:2.0:Group"


class Directory:
    """Sends requests as a caller; ``ask`` answers whatever comes, the others insist on success."""

    def __init__(self, caller: Mapping[str, Any] | None = ADMIN, mode: str = "basic") -> None:
        self.caller = caller
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(AUTHENTICATION, mode)
            self._handler = lambda_handler(users.app.RPCS, users.app.PLAIN_ROUTES, ERROR_FORMAT)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        text: str | None = None,
        **query: Any,
    ) -> Answer:
        """The answer to a request below ``/scim/v2/``.

        Args:
            body: sent as JSON.
            text: sent as it is, instead of ``body``.
        """
        event: dict[str, Any] = {
            "version": "2.0",
            "rawPath": f"/scim/v2/{path}",
            "rawQueryString": urlencode(query, quote_via=quote),
            "headers": {"content-type": SCIM_JSON, "host": "mlflow.example", **(headers or {})},
            "requestContext": {
                "http": {"method": method},
                "requestId": "test",
                "authorizer": self.caller or {"lambda": {"login": "none"}},
            },
            "isBase64Encoded": False,
        }
        if method not in ("GET", "HEAD", "DELETE"):
            event["body"] = json.dumps(body) if text is None else text
        answered = self._handler(event, None)
        content = answered["body"]
        assert answered["headers"]["content-type"] == SCIM_JSON
        return Answer(
            answered["statusCode"],
            json.loads(content) if content else {},
            len(content),
            answered["headers"],
        )

    @property
    def cost(self) -> capacity.Measurement:
        """What the last request cost."""
        last = capacity.last_measurement()
        assert last is not None
        return last

    def create(self, user_name: str, /, **fields: Any) -> dict[str, Any]:
        body = {"schemas": [CORE_USER], "userName": user_name, **fields}
        answer = self.ask("POST", "Users", body)
        assert answer.status == 201, answer.body
        return answer.body

    def create_group(self, display_name: str, *member_ids: str, **fields: Any) -> dict[str, Any]:
        members = [{"value": scim_id} for scim_id in member_ids]
        body = {"schemas": [CORE_GROUP], "displayName": display_name, "members": members, **fields}
        answer = self.ask("POST", "Groups", body)
        assert answer.status == 201, answer.body
        return answer.body

    def get(self, scim_id: str) -> dict[str, Any]:
        answer = self.ask("GET", f"Users/{scim_id}")
        assert answer.status == 200, answer.body
        return answer.body

    def find(self, condition: str, kind: str = "Users") -> list[dict[str, Any]]:
        answer = self.ask("GET", kind, filter=condition)
        assert answer.status == 200, answer.body
        assert answer.body["totalResults"] == len(answer.body["Resources"])
        resources: list[dict[str, Any]] = answer.body["Resources"]
        return resources

    def patch(self, path: str, *operations: Mapping[str, Any]) -> Answer:
        return self.ask("PATCH", path, self.patch_body(*operations))

    @staticmethod
    def patch_body(*operations: Mapping[str, Any]) -> dict[str, Any]:
        return {"schemas": [PATCH_OP], "Operations": list(operations)}

    def activate(self, scim_id: str, active: Any) -> Answer:
        return self.patch(f"Users/{scim_id}", {"op": "replace", "path": "active", "value": active})


def without_meta(resource: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in resource.items() if name != "meta"}
