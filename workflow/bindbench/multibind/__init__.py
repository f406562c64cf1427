"""MultiBind: instances built from photographs of several people, and how image generators mix them up."""
