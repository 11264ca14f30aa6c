"""The history of a run's metrics: batches, packs and files of points, read whole, by page, or
sampled."""
