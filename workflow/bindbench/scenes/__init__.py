"""From scenes to images (SABER, section A.4): the embedded 2.5D renderer.

An object is a drawing (SVG) that is turned once into a relief map (`relief`), then lit again in every scene with a
material made by formulas (`materials`): no 3D engine, no GPU, no network, the same pixels on every run. `shapes` gets the
drawings, `layout` scatters the objects, `render` draws one scene, `images` renders the shards of a benchmark.
"""
