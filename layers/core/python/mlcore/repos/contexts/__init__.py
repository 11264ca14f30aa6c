"""Items of numbered Kubeflow contexts, and the index keys of lists; used by the registry and by
Kubeflow."""
