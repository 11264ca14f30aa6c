"""The requests of sign-in, parsed."""

from __future__ import annotations

from typing import Final, NamedTuple

from mlcore.http import Sent
from mlcore.sign_in.cookie_headers import SESSION, SIGN_IN, cookie_name
from signin.addresses import return_address

OWN_ISSUER: Final = ""
"""The name of the deployment's own issuer."""


class Start(NamedTuple):
    """A request to begin a sign-in."""

    issuer: str | None
    """The name of the chosen issuer; None if none was chosen."""
    return_to: str
    """The page of this server to show after the sign-in."""


class Answer(NamedTuple):
    """The OpenID Connect issuer's answer, which the browser delivers, and the browser's cookies."""

    issuer: str
    """The issuer's name, from the URL's path; empty for the deployment's own."""
    fields: dict[str, str]
    """The parameters of the query string, by name; one that is repeated is left out."""
    attempts: dict[str, list[str]]
    """The values of the cookies of a sign-in, by their full names."""
    sessions: dict[str, list[str]]
    """The values of the cookies of a session, by their full names."""


class Leave(NamedTuple):
    """A request to sign out."""

    sessions: dict[str, list[str]]
    """The values of the cookies of a session, by their full names."""
    is_over: bool
    """Whether the issuer has ended its part and returned here."""


def parse_start(sent: Sent) -> Start:
    """Parses a request to begin a sign-in."""
    arguments = sent.arguments()
    return Start(arguments.get("issuer"), return_address(arguments.get("return", "/")))


def parse_answer(sent: Sent) -> Answer:
    """Parses an OpenID issuer's answer to a sign-in from the path, query and cookies of the
    browser's request."""
    return Answer(
        sent.parameters.get("issuer", OWN_ISSUER),
        {name: values[0] for name, values in sent.query().items() if len(values) == 1},
        _values(sent, SIGN_IN),
        _values(sent, SESSION),
    )


def parse_leave(sent: Sent) -> Leave:
    """Parses a request to sign out."""
    return Leave(_values(sent, SESSION), "done" in sent.arguments())


def _values(sent: Sent, cookie: str) -> dict[str, list[str]]:
    names = [cookie_name(cookie, is_secure=is_secure) for is_secure in (True, False)]
    return {name: sent.cookie_values(name) for name in names}
