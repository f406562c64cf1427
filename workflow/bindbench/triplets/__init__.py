"""The finetuning data (Appendix B): 100,000 examples, two text triplets each.

A backend proposes sentences, the validator alone accepts them, and our code makes the query and the negatives.
"""
