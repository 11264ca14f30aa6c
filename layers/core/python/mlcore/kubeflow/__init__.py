"""Kubeflow's model registry as plain values: entities, their JSON, filters and pages. Uses neither
storage nor MLflow.

A *kind* is a type of entity, such as a model version or an artifact type; ids of entities are
*numbers*.
"""
