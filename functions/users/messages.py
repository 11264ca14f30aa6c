"""Requests about users, roles and permissions.

They are no protobuf messages: MLflow reads them from the query string of a GET and from the JSON
body of everything else, and checks little, so the fields are kept as they come.
"""

from __future__ import annotations

from typing import Any

from mlcore.wire import Message


class CreateUser(Message):
    username: Any
    password: Any


class UserName(Message):
    username: Any


class Nothing(Message):
    pass


class UpdatePassword(Message):
    username: Any
    password: Any
    current_password: Any


class UpdateAdmin(Message):
    username: Any
    is_admin: Any


class UserPermission(Message):
    username: Any
    resource_type: Any
    resource_id: Any
    permission: Any


class CreateRole(Message):
    name: Any
    workspace: Any
    description: Any


class ListRoles(Message):
    workspace: list[str]


class RoleId(Message):
    role_id: Any


class UpdateRole(Message):
    role_id: Any
    name: Any
    description: Any


class AddRolePermission(Message):
    role_id: Any
    resource_type: Any
    resource_pattern: Any
    permission: Any


class RolePermissionId(Message):
    role_permission_id: Any


class UpdateRolePermission(Message):
    role_permission_id: Any
    permission: Any


class RoleAssignment(Message):
    username: Any
    role_id: Any


class ExperimentPermission(Message):
    experiment_id: Any
    username: Any
    permission: Any


class RegisteredModelPermission(Message):
    name: Any
    username: Any
    permission: Any
