"""The demo over many seeds: another split, other planted images, another cleaning each time.

    python benchmarks/demo_seeds.py [--seeds 10]

The last line is JSON: planted images found and clean images removed, all seeds together, and the worst of the
targeted misclassification rates before and after cleaning.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from unpoison.evaluation.demo import run_demo


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    results = []
    for seed in range(options.seeds):
        with tempfile.TemporaryDirectory() as folder:
            result = run_demo(Path(folder) / "demo", seed=seed)
        results.append(result)
        print(
            f"seed {seed}: found {result.n_found} of {result.n_poisoned}, "
            f"{result.n_clean_removed} clean removed, targeted {result.undefended.targeted:.1%} -> "
            f"{result.cleaned.targeted:.1%} (perfect cleaning {result.perfect.targeted:.1%})",
            flush=True,
        )
    planted = sum(r.n_poisoned for r in results)
    clean = sum(r.n_train - r.n_poisoned for r in results)
    summary = {
        "seeds": len(results),
        "found": round(sum(r.n_found for r in results) / planted, 4),
        "lost": round(sum(r.n_clean_removed for r in results) / clean, 4),
        "seeds_without_loss": sum(r.n_clean_removed == 0 for r in results),
        "least_targeted_before": round(min(r.undefended.targeted for r in results), 4),
        "most_targeted_after": round(max(r.cleaned.targeted for r in results), 4),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
