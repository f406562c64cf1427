"""Local pages on which a person looks at what was made and judges it; what is judged goes into a journal at every press.

journal.py: the append-only file of verdicts. judging.py: what may be judged, and the presses. server.py, serving.py: a web
server for this machine alone. scenes.py: the screening of SABER's images (A.4).
page/: the pages themselves.
"""
