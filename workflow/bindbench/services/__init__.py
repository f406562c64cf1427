"""Paid services, once for every use: answers come from a store in which nothing is bought twice.

`buying.answers(requests, settings)` is the door: it yields an answer for every request, from the store or newly bought.
Its rooms, from the ground up: requests.py (what is asked, and its key), store.py (what was bought), keys.py, prices.py,
wire.py and judging.py (the services' formats), calling.py (one call), accounts.py (what was spent), spool.py, batches.py,
courier.py (the process that sends), buying.py and commands.py.
"""
