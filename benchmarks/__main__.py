"""`python -m benchmarks` is `python benchmarks/run.py`."""

import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # as it is for a script, which imports its neighbours by name
import_module("run").main()
