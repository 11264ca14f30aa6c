"""Requests about users, roles and permissions.

They are not protobuf messages in MLflow, which reads them from the query string of a GET and from
the JSON body of other requests, with few checks.
"""

from __future__ import annotations

from typing import Any

from mlcore.wire.untyped_message import Parameters


class CreateUser(Parameters):
    username: Any
    password: Any


class UserName(Parameters):
    username: Any


class Nothing(Parameters):
    pass


class UpdatePassword(Parameters):
    username: Any
    password: Any
    current_password: Any


class UpdateAdmin(Parameters):
    username: Any
    is_admin: Any


class UserPermission(Parameters):
    username: Any
    resource_type: Any
    resource_id: Any
    permission: Any


class CreateKey(Parameters):
    name: Any
    username: Any
    scopes: Any
    expires_in_seconds: Any


class ListKeys(Parameters):
    username: Any


class KeyId(Parameters):
    key_id: Any


class RotateKey(Parameters):
    key_id: Any
    overlap_seconds: Any


class ServiceAccount(Parameters):
    username: Any


class CreateRole(Parameters):
    name: Any
    workspace: Any
    description: Any


class ListRoles(Parameters):
    workspace: list[str]


class RoleId(Parameters):
    role_id: Any


class UpdateRole(Parameters):
    role_id: Any
    name: Any
    description: Any


class AddRolePermission(Parameters):
    role_id: Any
    resource_type: Any
    resource_pattern: Any
    permission: Any


class RolePermissionId(Parameters):
    role_permission_id: Any


class UpdateRolePermission(Parameters):
    role_permission_id: Any
    permission: Any


class RoleAssignment(Parameters):
    username: Any
    role_id: Any


class ExperimentPermission(Parameters):
    experiment_id: Any
    username: Any
    permission: Any


class ScorerPermission(Parameters):
    experiment_id: Any
    scorer_name: Any
    username: Any
    permission: Any


class RegisteredModelPermission(Parameters):
    name: Any
    username: Any
    permission: Any
