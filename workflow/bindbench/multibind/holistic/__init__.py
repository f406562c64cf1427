"""Whole generated images against their photographs (section 5.1): `measuring` looks at them, `tabulating` sums up."""
