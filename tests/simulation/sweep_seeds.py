"""`python -m tests.simulation.sweep_seeds FROM TO`: play many seeds, print the failing ones in a line each."""

import sys

import structlog
from tests.simulation.histories import run_history
from tests.world.services import ALL


def main(first: int, last: int) -> int:
    failed = 0
    for seed in range(first, last):
        try:
            run_history(seed, ALL)
        except (AssertionError, RuntimeError, LookupError, TypeError, ValueError) as error:
            failed += 1
            print(
                f"seed {seed}: {str(error).splitlines()[0][:600] if str(error) else type(error).__name__}",
                flush=True,
            )
    print(f"{last - first - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
