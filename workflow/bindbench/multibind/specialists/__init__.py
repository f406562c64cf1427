"""What measures MultiBind's four dimensions (Table 2): a module each, whose `specialist` says how two crops are compared.

base.py says what a specialist is, features.py keeps what they measure, similarity.py compares it.
"""
