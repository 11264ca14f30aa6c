"""Keys that Kubeflow's registry needs and that MLflow's repositories must write or delete, too: the
index keys by which Kubeflow's lists find an item (``list_keys``), and the keys of all items that
belong to a Kubeflow context, such as a model with a Kubeflow number (``context_items``)."""
