"""A quick product over a quick simulator: every time at one pace, those of the cloud included.

Only for a simulated cloud whose own times are scaled as well.  A real one keeps the times of clouds, whatever the rhythm.
"""

from roadstead.clock import OF_CLOUDS, Durations
from roadstead.settings import PREFIX


def paced_environment(pace: float) -> dict[str, str]:
    """The variables for a service at this pace."""
    usual = Durations()
    times = {PREFIX + name.upper(): f"{getattr(usual, name) * pace:g}" for name in OF_CLOUDS}
    return {f"{PREFIX}PACE": f"{pace:g}", **times}
