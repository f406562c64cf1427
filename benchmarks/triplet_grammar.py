"""How fast the grammar proposes, and with the validator how many examples are accepted. Goals: 3,000 and 1,500 a second.

    python benchmarks/triplet_grammar.py        writes benchmarks/triplet_grammar.md

Seconds are CPU-seconds of one core. The specifications are sampled before; caps and duplicates, which come after the
validator, are not part of it.
"""

import random
import sys
import time
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "workflow"))

from bindbench.triplets.constructions import CONSTRUCTIONS, Example  # noqa: E402
from bindbench.triplets.controls import read_controls, sample_specification  # noqa: E402
from bindbench.triplets.grammar import propose, read_grammar  # noqa: E402
from bindbench.triplets.validation import check  # noqa: E402
from machine import describe  # noqa: E402

EXAMPLES = 3000  # of each construction
FOLDER = REPOSITORY / "resources" / "triplets"


def nothing_banned(word: str) -> bool:
    return False


def measured(name: str, grammar, controls) -> tuple[float, float, Counter]:
    """CPU-seconds of proposing and of checking, and the reasons of the rejects."""
    specifications = [sample_specification(controls, name, 0, index) for index in range(EXAMPLES)]
    start = time.process_time()
    proposals = [propose(grammar, s, random.Random(s.index), nothing_banned) for s in specifications]
    proposed = time.process_time()
    results = [check(s, p, families=controls.families) for s, p in zip(specifications, proposals, strict=True)]
    checked = time.process_time()
    return proposed - start, checked - proposed, Counter(r.reason for r in results if not isinstance(r, Example))


def main() -> None:
    start = time.process_time()
    grammar = read_grammar(FOLDER)
    reading = time.process_time() - start
    controls = read_controls(FOLDER)
    measured("pair_swap", grammar, controls)  # fills the caches of articles and tokens
    rows, total = [], [0.0, 0.0, 0]
    for name in CONSTRUCTIONS:
        proposing, checking, rejects = measured(name, grammar, controls)
        accepted = EXAMPLES - sum(rejects.values())
        total = [total[0] + proposing, total[1] + checking, total[2] + accepted]
        reasons = ", ".join(f"{reason} {count}" for reason, count in rejects.most_common()) or "none"
        rows.append(
            f"| {name} | {EXAMPLES / proposing:,.0f} | {EXAMPLES / checking:,.0f} |"
            f" {accepted / (proposing + checking):,.0f} | {100 * accepted / EXAMPLES:.1f} % | {reasons} |"
        )
    count = EXAMPLES * len(CONSTRUCTIONS)
    rows.append(
        f"| all | {count / total[0]:,.0f} | {count / total[1]:,.0f} | {total[2] / (total[0] + total[1]):,.0f} |"
        f" {100 * total[2] / count:.1f} % | |"
    )
    text = (
        f"# The grammar of the triplets\n\n{describe()} {EXAMPLES:,} specifications of each construction, sampled as the"
        f" data set's. Reading the grammar takes {reading:.2f} s.\n\n| construction | proposals a second | checks a second |"
        " accepted a second, both | accepted | rejected for |\n|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )
    (REPOSITORY / "benchmarks" / "triplet_grammar.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
