import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from reference_eval import fill_hooks

fill_hooks()
