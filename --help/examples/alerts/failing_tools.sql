-- when: MAX(error_rate) > 0.2
-- Tools of agents that failed in more than a fifth of at least 10 calls in the last hour.
SELECT name AS tool, count_if(status.code = 'STATUS_CODE_ERROR') / count(*) AS error_rate,
  count(*) AS calls
FROM system.mlflow.spans
WHERE request_time >= now() - INTERVAL 1 HOUR AND attributes['mlflow.spanType'] IN ('TOOL', '"TOOL"')
GROUP BY 1
HAVING count(*) >= 10
ORDER BY error_rate DESC
