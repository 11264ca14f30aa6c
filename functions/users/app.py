"""The RPCs about users, their permissions and their roles."""

from __future__ import annotations

import os

from mlcore.http import PlainRoute, delete, get, lambda_handler, patch, post
from mlcore.http.gate import is_on
from users import messages as m
from users import permissions, roles, service, signup
from users.named_permissions import OF_EXPERIMENTS, OF_MODELS, OF_SCORERS

RPCS = (
    post("/mlflow/users/create", m.CreateUser, service.create_user, "users.create_user"),
    get("/mlflow/users/get", m.UserName, service.get_user, "users.oneself"),
    get("/mlflow/users/list", m.Nothing, service.list_users, "users.list_users"),
    get("/mlflow/users/current", m.Nothing, service.get_current_user, "requests.anybody"),
    patch(
        "/mlflow/users/update-password", m.UpdatePassword, service.update_password, "users.oneself"
    ),
    patch(
        "/mlflow/users/update-admin", m.UpdateAdmin, service.update_admin, "requests.administrators"
    ),
    delete("/mlflow/users/delete", m.UserName, service.delete_user, "requests.administrators"),
    post(
        "/mlflow/users/permissions/grant",
        m.UserPermission,
        permissions.grant_user_permission,
        "users.manage_resource",
        version="3.0",
    ),
    post(
        "/mlflow/users/permissions/revoke",
        m.UserPermission,
        permissions.revoke_user_permission,
        "users.manage_resource",
        version="3.0",
    ),
    get(
        "/mlflow/users/permissions/get",
        m.UserPermission,
        permissions.get_user_permission,
        "users.view_permission",
        version="3.0",
    ),
    get(
        "/mlflow/users/permissions/list",
        m.UserName,
        permissions.list_user_permissions,
        "users.view_user",
        version="3.0",
    ),
    get(
        "/mlflow/users/current/permissions",
        m.Nothing,
        permissions.list_current_user_permissions,
        "requests.anybody",
        version="3.0",
    ),
    get(
        "/mlflow/users/roles/list",
        m.UserName,
        roles.list_user_roles,
        "users.view_user",
        version="3.0",
    ),
    post(
        "/mlflow/roles/create", m.CreateRole, roles.create_role, "users.manage_role", version="3.0"
    ),
    get("/mlflow/roles/get", m.RoleId, roles.get_role, "users.view_role", version="3.0"),
    get("/mlflow/roles/list", m.ListRoles, roles.list_roles, "users.list_roles", version="3.0"),
    patch(
        "/mlflow/roles/update", m.UpdateRole, roles.update_role, "users.manage_role", version="3.0"
    ),
    delete("/mlflow/roles/delete", m.RoleId, roles.delete_role, "users.manage_role", version="3.0"),
    post(
        "/mlflow/roles/permissions/add",
        m.AddRolePermission,
        roles.add_role_permission,
        "users.manage_role",
        version="3.0",
    ),
    delete(
        "/mlflow/roles/permissions/remove",
        m.RolePermissionId,
        roles.remove_role_permission,
        "users.manage_role",
        version="3.0",
    ),
    get(
        "/mlflow/roles/permissions/list",
        m.RoleId,
        roles.list_role_permissions,
        "users.view_role",
        version="3.0",
    ),
    patch(
        "/mlflow/roles/permissions/update",
        m.UpdateRolePermission,
        roles.update_role_permission,
        "users.manage_role",
        version="3.0",
    ),
    post(
        "/mlflow/roles/assign",
        m.RoleAssignment,
        roles.assign_role,
        "users.manage_role",
        version="3.0",
    ),
    delete(
        "/mlflow/roles/unassign",
        m.RoleAssignment,
        roles.unassign_role,
        "users.manage_role",
        version="3.0",
    ),
    get(
        "/mlflow/roles/users/list",
        m.RoleId,
        roles.list_role_users,
        "users.manage_role",
        version="3.0",
    ),
    post(
        "/mlflow/experiments/permissions/create",
        m.ExperimentPermission,
        OF_EXPERIMENTS.create,
        "experiments.manage",
    ),
    get(
        "/mlflow/experiments/permissions/get",
        m.ExperimentPermission,
        OF_EXPERIMENTS.get,
        "experiments.manage",
    ),
    patch(
        "/mlflow/experiments/permissions/update",
        m.ExperimentPermission,
        OF_EXPERIMENTS.update,
        "experiments.manage",
    ),
    delete(
        "/mlflow/experiments/permissions/delete",
        m.ExperimentPermission,
        OF_EXPERIMENTS.delete,
        "experiments.manage",
    ),
    post(
        "/mlflow/registered-models/permissions/create",
        m.RegisteredModelPermission,
        OF_MODELS.create,
        "users.manage_model",
    ),
    get(
        "/mlflow/registered-models/permissions/get",
        m.RegisteredModelPermission,
        OF_MODELS.get,
        "users.manage_model",
    ),
    patch(
        "/mlflow/registered-models/permissions/update",
        m.RegisteredModelPermission,
        OF_MODELS.update,
        "users.manage_model",
    ),
    delete(
        "/mlflow/registered-models/permissions/delete",
        m.RegisteredModelPermission,
        OF_MODELS.delete,
        "users.manage_model",
    ),
    post(
        "/mlflow/scorers/permissions/create",
        m.ScorerPermission,
        OF_SCORERS.create,
        "users.manage_scorer",
        version="3.0",
    ),
    get(
        "/mlflow/scorers/permissions/get",
        m.ScorerPermission,
        OF_SCORERS.get,
        "users.manage_scorer",
        version="3.0",
    ),
    patch(
        "/mlflow/scorers/permissions/update",
        m.ScorerPermission,
        OF_SCORERS.update,
        "users.manage_scorer",
        version="3.0",
    ),
    delete(
        "/mlflow/scorers/permissions/delete",
        m.ScorerPermission,
        OF_SCORERS.delete,
        "users.manage_scorer",
        version="3.0",
    ),
)

PLAIN_ROUTES = (
    PlainRoute("GET", "/signup", signup.show_form, "users.create_user"),
    PlainRoute("POST", "/api/2.0/mlflow/users/create-ui", signup.create_user, "users.create_user"),
)

# Where nobody logs in the paths are unknown, by which the UI knows that there are no accounts.
handler = lambda_handler(RPCS, PLAIN_ROUTES) if is_on(os.environ) else lambda_handler(())
