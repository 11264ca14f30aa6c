"""Policies: for each route a function that says whether the caller may make this call. Loaded only
where a login is required.

A *grant* gives a user or a role a permission (READ, USE, EDIT, MANAGE, DENY …) on a resource, such
as an experiment or a model, or on all resources of a type (``*``). DENY forbids access to the
resources it names, whatever else is granted, except to administrators.
"""
