"""Every test of services has keys that must show up nowhere, whether or not it uses the server."""

import pytest


@pytest.fixture(autouse=True)
def _keys(keys):
    """See tests/support/service_fixtures.py."""
