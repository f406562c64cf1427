"""What a proposal must satisfy to become an example (Appendix B.3 and B.4): the rules, grouped by what they look at.

A rule is a function of a Draft and returns "" or the words concerned; its name is the reason of the reject. validation.py says
in which order they run, which constructions each is for, and which sentence of the paper it stands for.
"""
