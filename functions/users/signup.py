"""The sign-up page, on which administrators create users in a browser, and the request that its
form sends."""

from __future__ import annotations

import hmac
import secrets
from html import escape
from typing import Final, NamedTuple
from urllib.parse import parse_qs

from mlcore import errors
from mlcore.auth.passwords import hash_password
from mlcore.http import Request, Response, Sent
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


class Form(NamedTuple):
    """The fields that the form of the sign-up page sends, and the token of the CSRF cookie."""

    token: str
    cookie_token: str
    """The token in the cookie, which must be equal to ``token``."""
    username: str
    password: str


def form(sent: Sent) -> Form | None:
    """Parses the form that the sign-up page sends. Returns None if the request has another
    Content-Type."""
    if sent.headers.get("content-type", "").split(";")[0].strip() != _FORM:
        return None
    fields = parse_qs(sent.body().decode("utf-8", "replace"), keep_blank_values=True)
    token, username, password = (
        fields.get(name, [""])[0] for name in ("csrf_token", "username", "password")
    )
    return Form(token, sent.cookie(_COOKIE), username, password)


def show_form(_message: None, request: Request) -> Response:
    """Returns the sign-up page with its form. The form and a cookie hold the same random token, so
    a form from another site, which cannot read or set the cookie, is refused."""
    token = secrets.token_urlsafe(32)
    cookie = f"{_COOKIE}={token}; Path={_TARGET}; HttpOnly; SameSite=Strict"
    page = _PAGE.format(content=_FIELDS.format(target=_TARGET, token=token))
    return Response(200, page, _HTML, {"set-cookie": cookie, "cache-control": "no-store"})


def create_user(form: Form | None, request: Request) -> Response:
    """Creates the user whom a sign-up form names, and returns a page with the result."""
    if form is None:
        return Response(400, f"Invalid content type. Must be {_FORM}", _HTML)
    if not form.token:
        return Response(400, _PAGE.format(content="The CSRF token is missing."), _HTML)
    expected = form.cookie_token or secrets.token_urlsafe(32)
    if not hmac.compare_digest(form.token.encode(), expected.encode()):
        return Response(400, _PAGE.format(content="The CSRF tokens do not match."), _HTML)
    username, password = form.username, form.password
    if not username or not password:
        return Response(400, "Username and password cannot be empty.", _HTML)
    try:
        users.create(username, hash_password(checked_password(password)), is_admin=False)
    except UserExists:
        return _page(f"Username has already been taken: {username}", "/signup")
    except errors.InvalidParameterValue as error:
        return Response(400, escape(error.message), _HTML)
    return _page(f"Successfully signed up user: {username}", "/")


def _page(text: str, next_page: str) -> Response:
    content = f'<p>{escape(text)}</p>\n<p><a href="{next_page}">Go on</a></p>'
    return Response(200, _PAGE.format(content=content), _HTML)
