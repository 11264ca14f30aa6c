"""MLflow's rules about names, values, sizes and counts, with the messages of its server.

Pure functions. Each RPC with rules has one, which runs them in MLflow's order, raises
InvalidParameterValue at the first that does not hold, and answers the entities to store, values
truncated where MLflow truncates:

experiments
    ``check_create_experiment(name, artifact_location, tags) -> [Tag]``,
    ``check_name(name)`` for a rename, ``check_tag(key, value) -> Tag`` and
    ``check_custom_views(id, key, existing keys)`` for set-experiment-tag,
    ``experiment_id(text) -> id``.
runs
    ``check_create_run(run_name, tags) -> (name or None, [Tag])``,
    ``check_metric(metric) -> Metric``, ``check_param(param) -> Param``, ``check_tag(tag) -> Tag``,
    ``check_log_batch(run_id, metrics, params, tags) -> Batch``,
    ``logged_model(model_json) -> dict``, ``check_history_page(max_results)``,
    ``check_history_bulk(run_ids, has_metric_key)``, ``check_step_range(start, end)``.
datasets
    ``check_log_inputs(run_id, inputs) -> [DatasetInput]``,
    ``check_search_datasets(experiment_ids)``.
locations
    ``check_location(location, field)``.
text
    ``check_max_results(n)`` of the searches, ``check_run_id(run_id)``.
"""
