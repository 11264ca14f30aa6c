"""Rules about the settings ``sign_in_issuers`` (OpenID Connect issuers by which users sign in) and
``sign_in_roles`` (which of their claims give which roles).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mlcore.auth import permissions
from mlcore.auth.issuer_addresses import is_safe
from mlcore.errors import InvalidParameterValue

ISSUERS: Final = "sign_in_issuers"
ROLES: Final = "sign_in_roles"

E_MAIL_DOMAIN: Final = "email_domain"
"""In a rule, names the part of the user's e-mail address after the ``@``, instead of a claim."""

DIRECTORY: Final = "scim"
"""In a rule, names the directory that provisions groups over SCIM, instead of an issuer."""
_GROUP_CLAIMS: Final = ("displayName", "externalId")
"""The attributes of a group that a rule for the directory can compare."""

MAX_ISSUERS: Final = 20
MAX_RULES: Final = 500
MAX_BYTES: Final = 300_000
"""Each setting must fit into one DynamoDB item."""

_NAME: Final = re.compile("[a-z0-9][a-z0-9-]{0,39}")
_DOMAIN: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
_ISSUER_TEXTS: Final = ("title", "scopes", "username_claim", "groups_claim", "subject_claim")
_RULE_FIELDS: Final = frozenset(
    ("claim", "value", "issuer", "administrator", "role", "workspace", "permissions")
)
_GRANT_FIELDS: Final = frozenset(("resource_type", "resource_pattern", "permission"))
MAX_TEXT: Final = 255


def check_issuers(value: Any) -> None:
    """Checks the setting ``sign_in_issuers``: an object by name, each entry with ``issuer``,
    ``client_id`` and ``domains``, the e-mail domains for which the issuer may speak. Raises
    InvalidParameterValue."""
    if not isinstance(value, dict) or len(value) > MAX_ISSUERS:
        raise InvalidParameterValue(
            f"The setting '{ISSUERS}' must be an object of at most {MAX_ISSUERS} issuers by name."
        )
    for name, issuer in value.items():
        if name == DIRECTORY:
            raise InvalidParameterValue(
                f"The setting '{ISSUERS}' cannot have the name '{DIRECTORY}': rules of '{ROLES}' "
                "name the directory so."
            )
        if not _NAME.fullmatch(name):
            raise InvalidParameterValue(
                f"The setting '{ISSUERS}' cannot have the name {name!r}: a name has lower-case "
                "letters, digits and hyphens."
            )
        _check_issuer(name, issuer)
    _check_size(ISSUERS, value)


def _check_issuer(name: str, issuer: Any) -> None:
    if not isinstance(issuer, dict):
        raise InvalidParameterValue(f"The issuer '{name}' must be an object.")
    unknown = issuer.keys() - {"issuer", "client_id", "domains", *_ISSUER_TEXTS}
    if unknown:
        raise InvalidParameterValue(f"The issuer '{name}' cannot have '{min(unknown)}'.")
    if not (_is_text(issuer.get("issuer")) and is_safe(issuer["issuer"])):
        raise InvalidParameterValue(
            f"'issuer' of '{name}' must be the issuer's URL (https://), exactly as its tokens name "
            "it."
        )
    if not _is_text(issuer.get("client_id")):
        raise InvalidParameterValue(f"'client_id' of '{name}' must be a text.")
    domains = issuer.get("domains")
    if not (
        isinstance(domains, list)
        and domains
        and all(isinstance(domain, str) and _DOMAIN.fullmatch(domain) for domain in domains)
    ):
        raise InvalidParameterValue(
            f"'domains' of '{name}' must be a list of e-mail domains in lower case: users of a "
            "further issuer are named by addresses in these domains, so that it cannot speak for "
            "the users of another."
        )
    for field in _ISSUER_TEXTS:
        if field in issuer and not _is_text(issuer[field]):
            raise InvalidParameterValue(f"'{field}' of '{name}' must be a text.")


def check_roles(value: Any) -> None:
    """Checks the setting ``sign_in_roles``: a list of rules by which claims give roles. Raises
    InvalidParameterValue."""
    if not isinstance(value, list) or len(value) > MAX_RULES:
        raise InvalidParameterValue(
            f"The setting '{ROLES}' must be a list of at most {MAX_RULES} rules."
        )
    for position, rule in enumerate(value, 1):
        _check_rule(f"Rule {position} of '{ROLES}'", rule)
    _check_size(ROLES, value)


def _check_rule(rule_name: str, rule: Any) -> None:
    if not isinstance(rule, dict) or not rule.keys() <= _RULE_FIELDS:
        raise InvalidParameterValue(
            f"{rule_name} must be an object with the fields {', '.join(sorted(_RULE_FIELDS))}."
        )
    for field in ("claim", "value"):
        if not _is_text(rule.get(field)):
            raise InvalidParameterValue(f"'{field}' in {rule_name} must be a text.")
    for field in ("issuer", "role", "workspace"):
        if field in rule and not _is_text(rule[field]):
            raise InvalidParameterValue(f"'{field}' in {rule_name} must be a text.")
    if rule.get("administrator") not in (None, True, False):
        raise InvalidParameterValue(f"'administrator' in {rule_name} must be true or false.")
    if ("role" in rule) == (rule.get("administrator") is True):
        raise InvalidParameterValue(f"{rule_name} must have either a role or administrator: true.")
    if rule.get("issuer") == DIRECTORY:
        _check_directory_rule(rule_name, rule)
    if str(rule.get("role", "")).startswith("__user_"):
        raise InvalidParameterValue(f"'role' in {rule_name} has a reserved name.")
    grants = rule.get("permissions", [])
    if not isinstance(grants, list):
        raise InvalidParameterValue(f"'permissions' in {rule_name} must be a list.")
    for grant in grants:
        _check_grant(rule_name, grant)
    if len({(each["resource_type"], each["resource_pattern"]) for each in grants}) < len(grants):
        raise InvalidParameterValue(f"'permissions' in {rule_name} name a resource twice.")


def _check_directory_rule(rule_name: str, rule: Mapping[str, Any]) -> None:
    if rule["claim"] not in _GROUP_CLAIMS:
        raise InvalidParameterValue(
            f"'claim' in {rule_name} must be {' or '.join(_GROUP_CLAIMS)}, because it is for "
            "groups of the directory."
        )
    if "role" not in rule:
        raise InvalidParameterValue(
            f"{rule_name} must have a role: groups of the directory make nobody an administrator."
        )


def _check_grant(rule_name: str, grant: Any) -> None:
    if (
        not isinstance(grant, dict)
        or grant.keys() != _GRANT_FIELDS
        or not all(map(_is_text, grant.values()))
    ):
        raise InvalidParameterValue(
            f"A permission in {rule_name} must be an object with the texts "
            f"{', '.join(sorted(_GRANT_FIELDS))}."
        )
    permissions.check_level(grant["permission"], grant["resource_type"])
    permissions.check_pattern(grant["resource_pattern"], grant["resource_type"])
    permissions.check_skill(grant["resource_pattern"], grant["resource_type"])


def _check_size(setting: str, value: Mapping[str, Any] | Sequence[Any]) -> None:
    if len(json.dumps(value, ensure_ascii=False).encode()) > MAX_BYTES:
        raise InvalidParameterValue(f"The setting '{setting}' can have at most {MAX_BYTES} bytes.")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_TEXT and value.isprintable()
