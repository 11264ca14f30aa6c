-- when: COUNT(run_id) > 0
-- Runs of the last day in which a loss is NaN or infinite.
SELECT run_id, experiment_id, metric_name, max(metric_step) AS step
FROM system.mlflow.run_metrics_history
WHERE metric_time >= now() - INTERVAL 1 DAY
  AND metric_name LIKE '%loss%'
  AND (isnan(metric_value) OR abs(metric_value) = double('Infinity'))
GROUP BY 1, 2, 3
ORDER BY 1
