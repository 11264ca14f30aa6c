"""MLflow's rules about names, values, sizes and counts, with the messages of its server.

Pure functions, a module for each noun. They run in MLflow's order, raise InvalidParameterValue (or
BadRequest, where MLflow does) at the first rule that does not hold, and answer what is to be
stored, values truncated where MLflow truncates.

- ``experiments``, ``runs``, ``datasets``, ``logged_models``, ``registry``, ``traces``,
  ``webhooks``, ``workspaces`` and the folder ``evaluation``: what their RPCs take, most of it by a
  ``check_`` for each request.
- ``locations`` and ``model_sources``: where files may be, and where a model version may come from.
- ``config``: the settings of a deployment.
- ``text``: keys, lengths, paths, run ids and pages, which several of them share.
"""
