-- when: MAX(usd) > 50
-- What the calls of each user and endpoint of the AI gateway have cost since midnight (UTC).
SELECT user_name, endpoint_name, sum(total_cost) AS usd, count(*) AS calls
FROM system.mlflow.gateway_usage
WHERE request_time >= date_trunc('DAY', now())
GROUP BY 1, 2
ORDER BY usd DESC
