"""The embedded backend of the triplets: a grammar that writes positives of all seven constructions (Appendix B.2, B.3).

It stands in for the language model of B.1: it answers a `Specification` with a `Proposal` and nothing else, the validator
decides. All its sentences are put together from the fragments in resources/triplets/grammar, which a person can edit.

    fragments.py  one fragment of a sentence, and pools of fragments that are drawn from by their number of words
    reading.py    the resource files, checked, as a `Grammar` with a `Voice` for each register
    words.py      which objects and attributes: plausible in the scene, attributes that suit every object
    openings.py   how the sentence begins: 16 openers, and what they leave for the rest
    cores.py      the bindings in their construction, with the binding distance
    endings.py    distractors, context and the register's last words, up to the length band
    writing.py    the plan: opening, core, ending, until all controls are met
"""

from .reading import Grammar, read_grammar
from .writing import propose

__all__ = ["Grammar", "propose", "read_grammar"]
