"""The cage: a process without rights, in which a scorer's code assesses one trace or session.

On the server's side, :mod:`mlcore.scorer_cage.cage` starts the process and limits its time and
output, ``answers`` checks its answer, ``server_stop`` ends it, and ``remote_cage`` runs the code in
a Lambda function instead. The other modules run inside the process and import only the standard
library and names of MLflow's tags. There :mod:`~mlcore.scorer_cage.inside` imports what the scorer
needs, gives up all rights, and only then compiles the scorer's code.
"""
