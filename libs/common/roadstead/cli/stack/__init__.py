"""The local stack: broker, database, simulated cloud and every service as processes of one supervisor.

All of it lives in one folder (`ROADSTEAD_HOME`, else `.run`), and a process is ended only when its id and its start time are the
recorded ones.
"""
