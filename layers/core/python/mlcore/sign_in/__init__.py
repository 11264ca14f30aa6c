"""Sign-in of browsers: the encrypted cookie of a session, and how long sessions last. Needs the
layer ``tokens``.
"""
