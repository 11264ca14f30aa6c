"""Rules about names, values, sizes and counts in requests: those of MLflow, with the messages of
its server, and those of this product for its own routes and settings.

The functions use neither the table nor the network; each noun has a module. They apply the rules in
MLflow's order and raise InvalidParameterValue (or BadRequest, where MLflow does) at the first rule
that is violated. They return the values to store, truncated where MLflow truncates. Classes named
``…Fields`` describe a part of a request before it is checked.

- ``experiments``, ``runs``, ``run_datasets``, ``promptlab``, ``logged_models``, ``registry``,
  ``traces``, ``webhooks``, ``workspaces``, ``mcp_servers``, ``skills``, ``gateway``,
  ``saved_queries``, ``alerts`` and the package ``evaluation``: the requests about these entities,
  most of them by a ``check_`` function for each request.
- ``skill_sources`` and ``skill_paths``: where a version of a skill may come from, and how its files
  may be named.
- ``artifact_locations`` and ``model_sources``: where files may be stored, and from which sources a
  model version may be made.
- ``settings``, ``gateway_limits``, ``redaction`` and ``sign_in``: the settings of a deployment.
- ``shared_checks``: keys, lengths, paths, run ids and page sizes, which several nouns share.
"""
