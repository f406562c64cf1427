"""SABER: does an embedder keep which attribute belongs to which object?"""
