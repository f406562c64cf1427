"""Any embedder behind one interface, and the cache of its embeddings.

`loading.load` makes a Model of a config entry; `embed.embed_texts` and `embed.embed_images` write the tables that are
scored, and take from `cache` whatever was embedded before.
"""
