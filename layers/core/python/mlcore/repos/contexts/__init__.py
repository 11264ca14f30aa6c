"""Kubeflow contexts (experiments, runs, models and versions under Kubeflow's numbers): the items of
each, and the index keys by which lists find them. Used by MLflow's registry and by Kubeflow's."""
