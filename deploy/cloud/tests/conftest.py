"""The program is not installed: its folder is put on the path."""

import sys
from pathlib import Path

CLOUD = Path(__file__).resolve().parent.parent

if str(CLOUD) not in sys.path:
    sys.path.insert(0, str(CLOUD))
