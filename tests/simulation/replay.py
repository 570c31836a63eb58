"""`python -m tests.simulation.replay SEED`: one history again, with everything it logs."""

import sys

from tests.simulation.histories import run_history
from tests.world.services import ALL

if __name__ == "__main__":
    history = run_history(int(sys.argv[1]), ALL)
    print("\n".join(history.trail))
