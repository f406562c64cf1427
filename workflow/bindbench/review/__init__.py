"""Local pages on which a person looks at what was made and judges it; what is judged goes into a journal at every press.

journal.py: the append-only file of verdicts. server.py: a web server for this machine alone. scenes.py: the screening of
SABER's images (A.4). page/: the page itself.
"""
