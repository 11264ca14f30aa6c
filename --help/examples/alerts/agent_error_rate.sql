-- when: MAX(error_rate) > 0.1
-- The share of traces with an error, of each experiment with at least 20 traces in the last hour.
SELECT experiment_id, count_if(state = 'ERROR') / count(*) AS error_rate, count(*) AS traces
FROM system.mlflow.traces
WHERE request_time >= now() - INTERVAL 1 HOUR
GROUP BY 1
HAVING count(*) >= 20
ORDER BY error_rate DESC
