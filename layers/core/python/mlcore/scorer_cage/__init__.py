"""The cage: a process without rights, in which a scorer's code assesses one trace or session.

:mod:`mlcore.scorer_cage.cage` is the server's side: it starts the process, limits its time and
output, and checks its answer. All other modules run inside the process and import only the standard
library: :mod:`~mlcore.scorer_cage.inside` imports what the scorer needs, gives up everything else,
and only then compiles the scorer's code.
"""
