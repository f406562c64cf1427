"""The validator, which alone decides whether a proposal becomes an example (Appendix B.3 and B.4).

`check` runs the rules of RULES in their order and returns an `Example`, or a `Reject` that carries the name of the first
rule that failed. A proposal comes from a language model: anything may be in it, and no proposal raises an exception. What
can be mended without changing a word is mended first, and always in the same way: white space is normalised, the bindings
and distractors are put into their order of mention, and a word is spelled as the positive spells it mid-sentence.

Frequency caps and duplicates (B.3) depend on the examples accepted before and are checked elsewhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .constructions import CONSTRUCTIONS, Example, Proposal, Reject, Specification
from .rules.draft import Draft, locate, make, measure, mend, split
from .rules.mentions import (
    affirmed_attribute,
    attributes_before_object,
    back_references,
    binding_distance,
    consistent_capitals,
    described_order,
    distractors_outside,
    joined_in_noun_order,
    linked_attribute,
    never_adjacent,
    no_bare_pronoun,
    objects_first,
    once_in_positive,
    predicated_attribute,
    resolved_references,
    respectively,
    separate_clauses,
    untouched_bindings,
    whole_distractors,
)
from .rules.proposals import (
    attribute_count,
    binding_count,
    claimed_families,
    different_slots,
    distinct_words,
    distractor_count,
    object_words,
    reasonable_size,
    shape,
    single_word_attributes,
)
from .rules.prose import capital_at_start, closed_quotes, end_punctuation, length, plain_text
from .rules.texts import (
    agreeing_articles,
    broken_bindings,
    different_texts,
    once_in_negatives,
    once_in_query,
    same_words,
)

LONGEST_DETAIL = 120
NO_FAMILIES: Mapping[str, str] = MappingProxyType({})
ADJACENT, PREDICATIVE = frozenset({"adjacent"}), frozenset({"predicative"})
ANAPHORIC, RESPECTIVE = frozenset({"anaphoric"}), frozenset({"respective"})
DEFERRED = ANAPHORIC | RESPECTIVE
ALL = ADJACENT | PREDICATIVE | DEFERRED


@dataclass(frozen=True)
class Rule:
    """A rule, the sentence of the paper it stands for ("" where the rule is ours), and the attachments it applies to."""

    holds: Callable[[Draft], str]
    sentence: str
    attachments: frozenset[str] = ALL

    @property
    def name(self) -> str:
        return self.holds.__name__


_STRUCTURED = "From this structured output, we construct the query and two hard negatives (B.1)."
_DISTINCT = (
    "Attributes are required to be single words, and all objects and attributes must be distinct, each appearing exactly "
    "once in the query, positive, and both negatives, so that all queried bindings are specified unambiguously (B.4)."
)
_DISTRACTORS = (
    "the prompt asks for up to three additional attribute-object pairs that are woven into the sentence but do not appear "
    "in the query (B.3)."
)
_SLOTS = "two objects, each carrying two attributes from different semantic slots (B.2)."
_CAPTION = "the model selects the objects and attributes and writes a contextualized positive caption (B.1)."
_DETACHED = (
    "two objects whose attributes are detached from their nouns through a copula, change-of-state verb, or relative clause "
    '(e.g., "the book was dated") (B.2).'
)
_NOT_ADJACENT = (
    "In the predicative and deferred_bind types, attributes are not adjacent to their objects, so the correct bindings must "
    "be recovered from sentence structure rather than local word co-occurrence (B.2)."
)
_REFERENCE = (
    'the attributes are then assigned by back-reference (e.g., "the former ... the latter" or "the first ... the '
    'second") (B.2).'
)
_JOINTLY = (
    'the attributes are then assigned jointly in noun order (e.g., "... were new and neat respectively"), so the binding '
    "is carried entirely by word order (B.2)."
)
_NEGATIVE = (
    "Each negative must be a word-level permutation of the positive (treating a and an as equivalent) that breaks every "
    "queried binding, introduces all intended incorrect bindings, and remains distinct from both the positive and the other "
    "negative (B.4)."
)

# The order in which the rules run. Steps that are no Rule work something out for the rules after them.
_ORDER: tuple[Rule | Callable[[Draft], str], ...] = (
    Rule(shape, _STRUCTURED),
    Rule(reasonable_size, ""),
    mend,
    Rule(
        binding_count,
        "seven construction types, which vary the number of attribute-object pairs and the sentence structure (B.2).",
    ),
    Rule(
        attribute_count,
        "two objects, each directly preceded by its attribute (B.2); two objects, each carrying two attributes (B.2).",
    ),
    Rule(single_word_attributes, _DISTINCT),
    Rule(object_words, ""),
    Rule(distractor_count, _DISTRACTORS),
    Rule(different_slots, _SLOTS, ADJACENT),
    Rule(claimed_families, _SLOTS, ADJACENT),
    Rule(distinct_words, _DISTINCT),
    Rule(plain_text, _CAPTION),
    Rule(closed_quotes, _CAPTION),
    Rule(end_punctuation, _CAPTION),
    split,
    Rule(capital_at_start, _CAPTION),
    Rule(
        length,
        "The target band is specified in the prompt and enforced during validation, allowing one word below and four words "
        "above the band (B.3).",
    ),
    locate,
    Rule(once_in_positive, _DISTINCT),
    Rule(consistent_capitals, ""),
    Rule(
        attributes_before_object,
        "attributes directly precede their objects in pair_swap, triple_bind, and attr_bundle (B.4).",
        ADJACENT,
    ),
    Rule(
        never_adjacent,
        "are never adjacent to their objects in predicative; and in deferred_bind are never adjacent to their objects (B.4); "
        'The adjacent phrase "<attribute> <object>" may not appear anywhere in the caption (B.2).',
        PREDICATIVE | DEFERRED,
    ),
    Rule(separate_clauses, _DETACHED, PREDICATIVE),
    Rule(linked_attribute, _DETACHED, PREDICATIVE),
    Rule(objects_first, "appear only after both objects have been introduced (B.4).", DEFERRED),
    Rule(no_bare_pronoun, 'Ambiguous references such as a bare "it" or "they" are rejected (B.2).', ANAPHORIC),
    Rule(back_references, _REFERENCE, ANAPHORIC),
    Rule(resolved_references, _REFERENCE, ANAPHORIC),
    Rule(
        described_order,
        "In half of the examples the second object is described first, so the reference must actually be resolved (B.2).",
        ANAPHORIC,
    ),
    Rule(respectively, _JOINTLY, RESPECTIVE),
    Rule(joined_in_noun_order, _JOINTLY, RESPECTIVE),
    Rule(predicated_attribute, _NOT_ADJACENT, PREDICATIVE | DEFERRED),
    Rule(affirmed_attribute, "", PREDICATIVE | DEFERRED),
    measure,
    Rule(
        binding_distance,
        "The target range is specified in the prompt and enforced during validation (B.3).",
    ),
    Rule(untouched_bindings, _DISTRACTORS),
    Rule(distractors_outside, _DISTRACTORS, DEFERRED),
    Rule(whole_distractors, _DISTRACTORS),
    make,
    Rule(once_in_query, _DISTINCT),
    Rule(
        agreeing_articles,
        'Article-agreement errors created by a permutation (e.g., "a envelope") are repaired automatically, and any '
        "remaining article error not already present in the positive causes the example to be rejected (B.4).",
    ),
    Rule(same_words, _NEGATIVE),
    Rule(once_in_negatives, _DISTINCT),
    Rule(broken_bindings, _NEGATIVE),
    Rule(different_texts, _NEGATIVE),
)

RULES: dict[str, Rule] = {step.name: step for step in _ORDER if isinstance(step, Rule)}

_STEPS: dict[str, tuple[Callable[[Draft], str], ...]] = {
    name: tuple(
        step.holds if isinstance(step, Rule) else step
        for step in _ORDER
        if not isinstance(step, Rule) or construction.attachment in step.attachments
    )
    for name, construction in CONSTRUCTIONS.items()
}


def check(
    specification: Specification, proposal: Proposal, *, families: Mapping[str, str] = NO_FAMILIES
) -> Example | Reject:
    """What becomes of a proposal: the example, or the name of the first rule of RULES that it fails (B.4).

    families: adjective -> family of the pool, for the slots of attr_bundle; adjectives that it does not hold are accepted.
    A proposal of the wrong types is a `Reject` without proposal, since no table could hold it.
    Raises only for a specification that makes no sense (KeyError, ValueError), a fault of the program.
    """
    draft = Draft()
    draft.specification, draft.proposal, draft.families = specification, proposal, families
    draft.construction = CONSTRUCTIONS[specification.construction]
    for step in _STEPS[specification.construction]:
        detail = step(draft)
        if detail:
            kept = None if step is shape else proposal
            return Reject(specification, kept, step.__name__, detail[:LONGEST_DETAIL])
    return Example(
        specification=specification,
        bindings=draft.bindings,
        query=draft.query,
        positive=draft.positive,
        attribute_negative=draft.attribute_negative,
        object_negative=draft.object_negative,
        distance=draft.distance,
        words=len(draft.tokens),
        distractors=draft.distractors,
        slots=draft.slots,
    )
