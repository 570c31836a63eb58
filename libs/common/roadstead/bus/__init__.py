"""The broker as a service uses it.

One connection that never gives up, streams and consumers made from the table in `subjects.py`, a position (epoch, sequence) for
every spec, dead letters, and requests.  While a connection is new nothing is consumed or published until its streams were looked
at (`epochs.py`); all that is bound to one connection ends with it (`session.py`).
"""
