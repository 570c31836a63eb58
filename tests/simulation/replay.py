"""`python -m tests.simulation.replay SEED`: one history again, with everything it logs."""

import sys

from roadstead_identity.__main__ import SERVICE as IDENTITY
from roadstead_network.__main__ import SERVICE as NETWORK

from tests.simulation.histories import run_history

if __name__ == "__main__":
    history = run_history(int(sys.argv[1]), (IDENTITY, NETWORK))
    print("\n".join(history.trail))
