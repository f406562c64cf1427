"""The nano embedder: a miniature of Qwen3-VL-Embedding, made from nothing but scenes of our own renderer."""
