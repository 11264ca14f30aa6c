-- when: MAX(p95_ms) > 30000
-- The latency that 95 % of the traces of an experiment do not exceed, in the last hour.
SELECT experiment_id, percentile(execution_duration_ms, 0.95) AS p95_ms, count(*) AS traces
FROM system.mlflow.traces
WHERE request_time >= now() - INTERVAL 1 HOUR AND state = 'OK'
GROUP BY 1
ORDER BY p95_ms DESC
