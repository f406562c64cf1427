"""bindbench: attribute-object binding in embedders (SABER) and attribute-person binding in image generators (MultiBind)."""

__version__ = "0.1.0"
