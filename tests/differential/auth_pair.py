"""Stock and the product with callers who log in, and what of their answers is compared."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

from tests.differential.rest import Call, Reply, Side, post
from tests.servers import ADMIN

V3 = "/api/3.0/mlflow/"
PASSWORD = "password-of-some-length"
Login = tuple[str, str] | None
FOR_OLD_CLIENTS = ("experiment_permissions", "registered_model_permissions", "scorer_permissions")
"""Of a user, besides what stock 3.18 says: clients up to 3.7 require these lists."""


def v3(method: str, path: str, fields: Any = None) -> Call:
    if method == "GET":
        return Call("GET", V3 + path, query=fields or {})
    return Call(method, V3 + path, fields or {})


class Both:
    """Stock and the product, and the differences between them since this was made: what other
    tests have left of roles, and of the administrator's permissions, is not compared."""

    def __init__(self, sides: list[Side]) -> None:
        self.sides, self.differences, self.name = sides, list[str](), uuid4().hex[:8]
        for side in sides:
            side.values.clear()
        listed = self.replies(ADMIN, v3("GET", "roles/list"))
        held = self.replies(ADMIN, v3("GET", "users/current/permissions"))
        self._earlier = [
            {role["id"] for role in roles.body["roles"]} | set(map(repr, own.body["permissions"]))
            for roles, own in zip(listed, held, strict=True)
        ]

    def users(self, *names: str) -> list[tuple[str, str]]:
        logins = [(f"{name} {self.name}", PASSWORD) for name in names]
        for login in logins:
            self.ask(ADMIN, post("users/create", {"username": login[0], "password": PASSWORD}))
        return logins

    def replies(self, login: Login, call: Call) -> list[Reply]:
        answered = []
        for side in self.sides:
            side.login = login
            answered.append(side.send(call))
        return answered

    def ask(self, login: Login, *calls: Call) -> None:
        for call in calls:
            replies = self.replies(login, call)
            stock, ours = (
                _comparable(side, reply, earlier)
                for side, reply, earlier in zip(self.sides, replies, self._earlier, strict=True)
            )
            if stock != ours and not _is_meant(*replies):
                self.differences.append(f"{login and login[0]}: {call}\n  {stock}\n  {ours}")

    def check(self) -> None:
        differences, self.differences = self.differences, []
        assert not differences, f"{len(differences)} differences\n" + "\n".join(differences)


def _comparable(side: Side, reply: Reply, earlier: set[int | str]) -> tuple[int, object]:
    """Without numbers and ids, which servers choose; lists of grants have no order."""
    body = reply.body
    if isinstance(body, dict) and isinstance(body.get("roles"), list):
        body = {**body, "roles": [role for role in body["roles"] if role["id"] not in earlier]}
    if isinstance(body, dict) and isinstance(body.get("permissions"), list):
        left = [held for held in body["permissions"] if repr(held) not in earlier]
        body = {**body, "permissions": left}
    return reply.status, _plain(side, body)


def _plain(side: Side, value: Any) -> Any:
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in FOR_OLD_CLIENTS}
        return {
            key: "<number>" if key in {"id", "role_id", "user_id"} else _plain(side, inner)
            for key, inner in sorted(kept.items())
        }
    if isinstance(value, list):
        return sorted((_plain(side, inner) for inner in value), key=repr)
    if isinstance(value, str):
        if value == str(side.values.get("experiment")):
            return "<experiment>"
        value = re.sub(r"__user_\d+__", "<own role>", value)
        value = re.sub(r"\b(resource_id)=(\d+|[0-9A-Z]{26}) ", r"\1=<experiment> ", value)
        return re.sub(r"\b(role_id|user_id|with id)=\d+", r"\1=<number>", value)
    return value


def _is_meant(stock: Reply, ours: Reply) -> bool:
    """Crashes become refusals, and SQL is not shown."""
    if stock.status >= 500:
        return ours.status == 400
    return "sqlalche.me" in stock.message and (stock.status, stock.code) == (ours.status, ours.code)
