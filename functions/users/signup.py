"""The page on which accounts are made without a client, and where its form goes."""

from __future__ import annotations

import hmac
import secrets
from html import escape
from typing import Final
from urllib.parse import parse_qs

from mlcore import errors
from mlcore.auth.passwords import hash_password
from mlcore.http import Request, Response
from mlcore.repos.users import users
from mlcore.repos.users.users import UserExists
from users.service import checked_password

_HTML: Final = "text/html; charset=utf-8"
_FORM: Final = "application/x-www-form-urlencoded"
_TARGET: Final = "/api/2.0/mlflow/users/create-ui"
_COOKIE: Final = "mlflow-signup"

_PAGE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Sign up - MLflow</title></head>
<body>
{content}
</body>
</html>
"""
_FIELDS: Final = """<form action="{target}" method="post">
  <input type="hidden" name="csrf_token" value="{token}">
  <p><label>Username: <input type="text" name="username" minlength="4" required></label></p>
  <p><label>Password: <input type="password" name="password" minlength="12" required></label></p>
  <p><input type="submit" value="Sign up"></p>
</form>"""


def show_form(request: Request) -> Response:
    """The form carries what the cookie carries, and no other site can read or set that."""
    token = secrets.token_urlsafe(32)
    cookie = f"{_COOKIE}={token}; Path={_TARGET}; HttpOnly; SameSite=Strict"
    page = _PAGE.format(content=_FIELDS.format(target=_TARGET, token=token))
    return Response(200, page, _HTML, {"set-cookie": cookie, "cache-control": "no-store"})


def create_user(request: Request) -> Response:
    """Raises InvalidParameterValue: a password that is too short."""
    if request.headers.get("content-type", "").split(";")[0].strip() != _FORM:
        return Response(400, f"Invalid content type. Must be {_FORM}", _HTML)
    given = parse_qs(request.body().decode("utf-8", "replace"), keep_blank_values=True)
    token, username, password = (
        given.get(name, [""])[0] for name in ("csrf_token", "username", "password")
    )
    if not token:
        return Response(400, _PAGE.format(content="The CSRF token is missing."), _HTML)
    if not hmac.compare_digest(token.encode(), _shown_before(request).encode()):
        return Response(400, _PAGE.format(content="The CSRF tokens do not match."), _HTML)
    if not username or not password:
        return Response(400, "Username and password cannot be empty.", _HTML)
    try:
        users.create(username, hash_password(checked_password(password)), is_admin=False)
    except UserExists:
        return _page(f"Username has already been taken: {username}", "/signup")
    except errors.InvalidParameterValue as error:
        return Response(400, escape(error.message), _HTML)
    return _page(f"Successfully signed up user: {username}", "/")


def _shown_before(request: Request) -> str:
    for cookie in request.event.get("cookies") or ():
        name, _, value = cookie.strip().partition("=")
        if name == _COOKIE and value:
            return str(value)
    return secrets.token_urlsafe(32)


def _page(text: str, next_page: str) -> Response:
    content = f'<p>{escape(text)}</p>\n<p><a href="{next_page}">Go on</a></p>'
    return Response(200, _PAGE.format(content=content), _HTML)
