"""All keys of the table. Keys are built and parsed in this package only.

Items: under each partition key its sort keys, and the items' ``type``::

    EXP#<experiment_id>
        E#META                                              experiment
        E#TAG#<key>                                         experiment_tag
        E#NAME_REV                                          experiment_name_rev
        R#<run_id>                                          run
        R#<run_id>#METRIC#<key>                             run_metric
        R#<run_id>#MHIST#<key>#<step>#<ts>#<suffix>         run_metric_history
        R#<run_id>#MBATCH#<batch_id>                        run_metric_batch
        R#<run_id>#MBFILE#<file_id>                         run_metric_file
        R#<run_id>#PARAM#<key>                              run_param
        R#<run_id>#TAG#<key>                                run_tag
        R#<run_id>#INPUT#<name>#<digest>                    run_input
        R#<run_id>#LM#<model_name>                          run_logged_model
        D#<dataset_hash>                                    dataset
        D#<dataset_hash>#PART#<field>#<number>              dataset_part
        T#<trace_id>                                        trace
        T#<trace_id>#TAG#<key>                              trace_tag
        T#<trace_id>#METADATA#<key>                         trace_metadata
        T#<trace_id>#A#<assessment_id>                      trace_assessment
        T#<trace_id>#PROMPT#<key>                           trace_prompt
        T#<trace_id>#SPANS                                  trace_spans
        T#<trace_id>#SPANS#<suffix>                         trace_spans_pack
        TRACEREMOVAL#<suffix>                               trace_removal
        LM#<model_id>                                       logged_model
        LM#<model_id>#PARAM#<key>                           logged_model_param
        LM#<model_id>#TAG#<key>                             logged_model_tag
        LM#<model_id>#POINTS#<suffix>                       logged_model_points
        DLINK#<run_id>#<dataset_name>#<digest>              dataset_link
        SCORER#<scorer_name>#V#<version>                    scorer_version
        LABELSCHEMA#<label_schema_id>                       label_schema
        LABELSCHEMANAME#<label_schema_name>                 label_schema_name
        REVIEWQUEUE#<queue_id>                              review_queue
        REVIEWQUEUENAME#<queue_name>                        review_queue_name
        REVIEWQUEUEITEM#<queue_id>#<item_id>                review_queue_item
        ISSUE#<issue_id>                                    issue
        RANK#m#<key>#<inv_value>#<run_id>                   rank_metric
        RANK#p#<key>#<value>#<run_id>                       rank_param
        RANKROWS#<rows_id>                                  rank_rows
        RANKROWS_SORTED                                     rank_rows_sorted
        RANKSEGMENT#<key>#<number>#<segment_id>             rank_segment
        RANKPAGE#<key>#<segment_id>#<number>                rank_page
        FTS#<level>#<token>#<entity_type>#<entity_id>       fts
        FTS_REV#<entity_type>#<entity_id>#<level>#<token>   fts_rev
        FTS_TEXTS                                           fts_texts
    EXPNAME#<workspace>#<experiment_name>
        EXPNAME#LOCK                                        experiment_name_lock
    RUN#<run_id>
        RUN#REF                                             run_ref
        RUN#TRACE#<trace_id>                                trace_link
        RUN#ASSESSED#<trace_id>                             assessed_trace
        RUN#MV#<incarnation>#<version>                      run_model_version
    TRACE#<trace_id>
        TRACE#REF                                           trace_ref
    LM#<model_id>
        LM#REF                                              logged_model_ref
    RM#<model_name>
        M#META                                              registered_model
        M#HOME                                              model_home
        M#V#<version>                                       model_version
        M#V#<version>#TAG#<key>                             model_version_tag
        M#TAG#<key>                                         model_tag
        M#ALIAS#<alias>                                     model_alias
        M#END#<version>                                     model_end
    WORKSPACE#<workspace>
        WS#META                                             workspace
        WS#NEW#<entity_type>#<entity>                       recent_entity
    WORKSPACES
        WORKSPACES#<workspace>                              workspace_name
    USER#<username>
        U#META                                              user
        U#PERM#<experiment_id>                              experiment_permission
        U#RPERM#<model_name>                                model_permission
        U#GRANT#<workspace>#<resource_type>#<resource_pattern>  user_grant
        U#ROLE#<role_id>                                    user_role
        U#SIGNIN                                            sign_in
        U#SCIM                                              scim_user
        U#SCIMGROUP#<group_id>                              scim_membership
    USERS
        USERS#<username>                                    user_name
    GRANTS#<workspace>#<resource_type>#<resource_pattern>
        GRANTS#<username>                                   grantee
    ROLES
        ROLE#<role_id>                                      role
        ROLENAME#<workspace>#<role_name>                    role_name
        ROLEUSER#<role_id>#<username>                       role_user
    APIKEYS#<user_id>
        APIKEYS#<key_id>                                    api_key
    SCIMNAME#<scim_kind>#<lower_name>
        SCIMNAME                                            scim_name
    SCIMVALUE#<scim_kind>#<attribute>#<text>
        SCIMVALUE#<scim_id>                                 scim_value
    SCIMGROUPS
        SCIMGROUP#<group_id>                                scim_group
    SCIMMEMBERS#<group_id>
        SCIMMEMBER#<scim_id>                                scim_member
    LOGIN#<address>
        LOGIN#<counter>                                     login
    SESSIONS#<username>
        SESSION#<hash>                                      session
    SESSION_KEYS
        SESSION_KEY#<key_id>                                session_key
    CALLERUSAGE#<target>
        CUSAGE#<time>                                       caller_usage
    COUNTERS
        COUNTER#<key>                                       counter
    CTR
        CTR                                                 id_counter
    MARKED
        MARKED#<experiment_id>                              marked_experiment
    CONFIG
        CFG#<key>                                           config
    LOCATIONS
        LOCATION#<location>#<holder>                        location
        LISTED                                              location_list
    WEBHOOKS#<workspace>
        WH#<webhook_id>                                     webhook
    QUERIES#<workspace>
        QUERY#<query_name>                                  saved_query
    MCPSERVERS#<workspace>
        MCPSERVER#<mcp_server_name>                         mcp_server
    MCPSERVER#<workspace>#<mcp_server_name>
        MCPVERSION#<mcp_server_version>                     mcp_server_version
    SKILLS#<workspace>
        SKILL#<organization>#<skill_name>                   skill
    SKILL#<workspace>#<organization>#<skill_name>
        SKILLVERSION#<version>                              skill_version
    GATEWAY#<workspace>
        GATEWAY#META                                        gateway_configuration
        GWSECRET#<secret_id>                                gateway_secret
        GWMODEL#<model_definition_id>                       gateway_model_definition
        GWENDPOINT#<endpoint_id>                            gateway_endpoint
        GWGUARDRAIL#<guardrail_id>                          gateway_guardrail
    GATEWAYBUDGETS
        GWBUDGET#<budget_policy_id>                         gateway_budget
    GATEWAYSPENDING#<budget_policy_id>
        GWSPENDING#<time>                                   gateway_spending
    GATEWAYUSAGE#<target>
        GWUSAGE#<time>                                      gateway_usage
        GWCALLS                                             gateway_open_calls
    EVALDATASETS#<workspace>
        EVALDATASET#<evaluation_dataset_id>                 evaluation_dataset
    EVALRECORDS#<evaluation_dataset_id>
        RECORD#<record_id>                                  evaluation_record
    ONLINESCORERS
        ONLINESCORER#<workspace>#<experiment_id>#<scorer_name>  online_scorer
        ONLINEPROGRESS#<workspace>#<experiment_id>          online_progress
    JOBS#<workspace>
        JOB#<job_id>                                        job
    JOBCALLS#<job_id>
        JOBCALL#<request_digest>#<number>                   job_call
    ISSUEDETECTIONS#<workspace>
        ISSUEDETECTION#<experiment_id>                      issue_detection
    DETECTIONSCHEDULES
        DETECTIONSCHEDULE#<workspace>#<experiment_id>       detection_schedule
    ALERTS
        ALERT#<workspace>#<alert_id>                        alert
    ENTITY#<entity_id>
        ENTITY#REF                                          entity_ref
    CSRC
        CSRC#CURRENT                                        catalog
        CSRC#GENERATION#<write_id>                          catalog_generation
    CSRC#<write_id>
        CSRC#SHARD#<number>                                 catalog_shard
    CONTEXT#<context_id>
        CONTEXT#REF                                         context_ref
        CHILD#<child_kind>#<child_name>                     context_child
        SE#META                                             serving_environment
        IS#META                                             inference_service
    ARTIFACT#<artifact_id>
        A#META                                              artifact
    EXECUTION#<execution_id>
        SM#META                                             serve_model
    CONTEXTNAME#<workspace>#<child_kind>#<child_name>
        CONTEXTNAME#LOCK                                    context_name
    EXTERNALID#<workspace>#<child_kind>#<external_id>
        EXTERNALID#LOCK                                     external_id

Secondary indexes: under each partition key its sort keys, and the pattern's name::

    LSI1 EXP#<experiment_id>
        <stage>#R#<time>#<inv_run_id>                       lsi1_run
        <stage>#LM#<time>#<inv_model_id>                    lsi1_logged_model
        PENDING#T#<trace_id>#<suffix>                       lsi1_trace
    LSI2 EXP#<experiment_id>
        R#<time>#<inv_run_id>                               lsi2_run
        T#<time>#<inv_trace_id>                             lsi2_trace
        MHIST#<run_id>#<key>#<span>#<first>#<last>#<number>#<double>  lsi2_metric_history
    LSI3 EXP#<experiment_id>
        <status>#R#<time>#<inv_run_id>                      lsi3_run
        <status>#T#<time>#<inv_trace_id>                    lsi3_trace
    LSI4 EXP#<experiment_id>
        R#<run_name>#<run_id>                               lsi4_run
        T#<trace_name>#<trace_id>                           lsi4_trace
        LM#<logged_model_name>#<time>#<inv_model_id>        lsi4_logged_model
    LSI5 EXP#<experiment_id>
        R#<key>#<double>#<inv_run_id>                       lsi5_run
        PENDING#R#<run_id>#<version>                        lsi5_run_mark
        T#<session>#<time>#<inv_trace_id>                   lsi5_trace
        LM#<run_id>#<time>#<inv_model_id>                   lsi5_logged_model
    LSI2 EVALRECORDS#<evaluation_dataset_id>
        RECORD#<time>#<number>#<record_id>                  lsi2_evaluation_record
    LSI2 DETECTIONSCHEDULES
        DETECTIONSCHEDULE#<time>#<workspace>#<experiment_id>  lsi2_detection_schedule
    LSI2 ALERTS
        ALERT#<time>#<workspace>#<alert_id>                 lsi2_alert
    LSI3 RM#<model_name>
        <stage>#V#<version>                                 lsi3_model_version
    GSI1 RUN#<run_id>
        EXP#<experiment_id>                                 gsi1_run
    GSI1 TRACE#<trace_id>
        EXP#<experiment_id>                                 gsi1_trace
    GSI1 CREATED#<workspace>#<child_kind>
        <time>#<number>                                     gsi1_created
    GSI2 WS#<workspace>
        EXP#<experiment_id>                                 gsi2_experiment
    GSI2 FTS#<token>
        <level>#<entity_type>#<entity_id>                   gsi2_fts
    GSI2 NUMBER#<workspace>#<child_kind>
        <number>                                            gsi2_number
    GSI2 UNSEEN#<workspace>#<child_kind>
        <suffix>                                            gsi2_unseen
    GSI3 EXPNAME#<experiment_name>
        EXP#<experiment_id>                                 gsi3_experiment
    GSI3 RMNAME#<model_name>
        RM#<model_name>                                     gsi3_model
    GSI4 EXPPERM#<experiment_id>
        USER#<username>                                     gsi4_experiment_permission
    GSI4 RMPERM#<model_name>
        USER#<username>                                     gsi4_model_permission
    GSI4 UPDATED#<workspace>#<child_kind>
        <time>#<number>                                     gsi4_updated
    GSI5 WS#<workspace>#EXP
        <experiment_name>                                   gsi5_experiment
    GSI5 RM_LIST
        <model_name>                                        gsi5_model
    GSI5 RM_LIST#<workspace>
        <model_name>                                        gsi5_workspace_model

:mod:`mlcore.db.keys.pattern` describes how fields are encoded, escaped and shortened,
:mod:`mlcore.db.sortable` the order of encoded values. A function with the name of a pattern builds
its key; ``…_prefix`` returns the common prefix of the sort keys with the given leading fields.
"""

from __future__ import annotations

from mlcore.db.keys.alerts import *  # noqa: F403
from mlcore.db.keys.alerts import ALERT_INDEX_PATTERNS, ALERT_PATTERNS
from mlcore.db.keys.catalog import *  # noqa: F403
from mlcore.db.keys.catalog import CATALOG_PATTERNS
from mlcore.db.keys.counters import *  # noqa: F403
from mlcore.db.keys.counters import COUNTER_PATTERNS
from mlcore.db.keys.evaluation import *  # noqa: F403
from mlcore.db.keys.evaluation import EVALUATION_INDEX_PATTERNS, EVALUATION_PATTERNS
from mlcore.db.keys.experiments import *  # noqa: F403
from mlcore.db.keys.experiments import EXPERIMENT_PATTERNS
from mlcore.db.keys.gateway import *  # noqa: F403
from mlcore.db.keys.gateway import GATEWAY_PATTERNS
from mlcore.db.keys.kubeflow import *  # noqa: F403
from mlcore.db.keys.kubeflow import KUBEFLOW_INDEX_PATTERNS, KUBEFLOW_PATTERNS
from mlcore.db.keys.locations import *  # noqa: F403
from mlcore.db.keys.locations import LOCATION_PATTERNS
from mlcore.db.keys.logged_models import *  # noqa: F403
from mlcore.db.keys.logged_models import LOGGED_MODEL_PATTERNS
from mlcore.db.keys.mcp_servers import *  # noqa: F403
from mlcore.db.keys.mcp_servers import MCP_SERVER_PATTERNS
from mlcore.db.keys.pattern import *  # noqa: F403
from mlcore.db.keys.pattern import Key, ParsedKey, Pattern
from mlcore.db.keys.registry import *  # noqa: F403
from mlcore.db.keys.registry import REGISTRY_PATTERNS
from mlcore.db.keys.runs import *  # noqa: F403
from mlcore.db.keys.runs import RUN_INDEX_PATTERNS, RUN_PATTERNS
from mlcore.db.keys.saved_queries import *  # noqa: F403
from mlcore.db.keys.saved_queries import SAVED_QUERY_PATTERNS
from mlcore.db.keys.scim import *  # noqa: F403
from mlcore.db.keys.scim import SCIM_PATTERNS
from mlcore.db.keys.search_index import *  # noqa: F403
from mlcore.db.keys.search_index import SEARCH_INDEX_PATTERNS
from mlcore.db.keys.secondary_indexes import *  # noqa: F403
from mlcore.db.keys.secondary_indexes import INDEX_PATTERNS
from mlcore.db.keys.settings import *  # noqa: F403
from mlcore.db.keys.settings import SETTING_PATTERNS
from mlcore.db.keys.skills import *  # noqa: F403
from mlcore.db.keys.skills import SKILL_PATTERNS
from mlcore.db.keys.traces import *  # noqa: F403
from mlcore.db.keys.traces import TRACE_PATTERNS
from mlcore.db.keys.users import *  # noqa: F403
from mlcore.db.keys.users import USER_PATTERNS
from mlcore.db.keys.webhooks import *  # noqa: F403
from mlcore.db.keys.webhooks import WEBHOOK_PATTERNS
from mlcore.db.keys.workspaces import *  # noqa: F403
from mlcore.db.keys.workspaces import WORKSPACE_PATTERNS

PATTERNS: dict[str, Pattern] = {
    pattern.name: pattern
    for pattern in (
        *EXPERIMENT_PATTERNS,
        *RUN_PATTERNS,
        *TRACE_PATTERNS,
        *LOGGED_MODEL_PATTERNS,
        *SEARCH_INDEX_PATTERNS,
        *REGISTRY_PATTERNS,
        *WORKSPACE_PATTERNS,
        *USER_PATTERNS,
        *COUNTER_PATTERNS,
        *SETTING_PATTERNS,
        *SCIM_PATTERNS,
        *LOCATION_PATTERNS,
        *WEBHOOK_PATTERNS,
        *SAVED_QUERY_PATTERNS,
        *ALERT_PATTERNS,
        *EVALUATION_PATTERNS,
        *MCP_SERVER_PATTERNS,
        *SKILL_PATTERNS,
        *GATEWAY_PATTERNS,
        *KUBEFLOW_PATTERNS,
        *CATALOG_PATTERNS,
    )
}
"""The patterns of items by name."""

INDEXES: dict[str, Pattern] = {
    pattern.name: pattern
    for pattern in (
        *INDEX_PATTERNS,
        *RUN_INDEX_PATTERNS,
        *EVALUATION_INDEX_PATTERNS,
        *ALERT_INDEX_PATTERNS,
        *KUBEFLOW_INDEX_PATTERNS,
    )
}
"""The patterns of secondary indexes by name."""

_BY_FIRST_SEGMENTS: dict[tuple[str, str], list[Pattern]] = {}
for _pattern in PATTERNS.values():
    _first_segments = (_pattern.pk.text.split("#", 1)[0], _pattern.sk.text.split("#", 1)[0])
    _BY_FIRST_SEGMENTS.setdefault(_first_segments, []).append(_pattern)


def parse(pk: str, sk: str) -> ParsedKey:
    """Finds the pattern that an item's key follows. Returns it with the key's fields. Raises
    ValueError if no pattern matches."""
    for pattern in _BY_FIRST_SEGMENTS.get((pk.split("#", 1)[0], sk.split("#", 1)[0]), ()):
        fields = pattern.parse(pk, sk)
        if fields is not None:
            return ParsedKey(pattern, fields)
    raise ValueError(f"no pattern has the key {pk!r} / {sk!r}")


def run_of(key: Key) -> tuple[str, str]:
    """Returns (experiment id, run id) of the run to which an item in an experiment's partition
    belongs. Raises ValueError if no pattern matches the key, KeyError if it is not of a run."""
    fields = parse(*key).fields
    return fields["experiment_id"], fields["run_id"]
