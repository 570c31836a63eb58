"""Settings of every test run.

Hypothesis judges by the clock whether inputs are made quickly enough; on a busy machine that says nothing about a test.
"""

from hypothesis import HealthCheck, settings

settings.register_profile("roadstead", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("roadstead")
