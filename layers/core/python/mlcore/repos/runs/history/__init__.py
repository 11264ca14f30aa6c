"""The history of a run's metrics. Points are stored as batches (those of one request), packs (many
of one metric) and files (many, in the artifact store); they are read whole, by page, or sampled."""
