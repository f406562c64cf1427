"""What the tests of people share."""

from pathlib import Path

import pytest
from people_models import people_models_folder


@pytest.fixture(scope="session")
def people_models() -> Path:
    """Folder of pose_landmarker.task and face_landmarker.task; the package index is asked once."""
    return people_models_folder()
