"""The generators that MultiBind evaluates (section 5.1), one small module per kind, and faults made on purpose.

registry.py says which kinds there are, making.py runs one of them over all instances. An embedded kind has a function
`picture(scene, settings)`, a paid one `request(scene, settings)`, an open one `open_model(settings)`.
"""
