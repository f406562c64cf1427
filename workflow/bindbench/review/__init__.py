"""Local pages on which a person looks at what was made and judges it; what is judged goes into a journal at every press.

journal.py: the append-only file of verdicts. judging.py: what may be judged, and the presses. server.py, serving.py: a web
server for this machine alone. pictures.py: pictures with the bytes that were noted. scenes.py: the screening of SABER's images
(A.4); multibind/ has the reviews of its own.
page/: one frame for all pages, and the script and style of each.
"""
