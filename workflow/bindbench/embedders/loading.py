"""Loads any embedder of the config behind one interface: texts or images in, float32 vectors of unit norm out.

sentence-transformers loads whatever it can, adapters included; open_clip is the second door; there is no third: the
packaged models become modules of sentence-transformers too (`modules.py`), or answer as one does (`efficientnet.py`).
Chat models such as Qwen3-VL-Embedding get the instruction as system message, and the hidden state of their last token is
the embedding (arXiv 2601.04720).
"""

import logging
import os
import re
import sys
import unicodedata
from collections.abc import Sequence
from contextlib import contextmanager
from importlib.metadata import version as version_of
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from ..config.embedders import Embedder
from ..errors import UserError, is_out_of_memory, room_on_gpu
from .sources import local_folder, open_clip_source, packaged_files

MAX_IMAGE_PIXELS = 64_000_000  # larger files are refused before they are decoded: a small PNG can unpack to gigabytes

UNLIMITED_TOKENS = 1_000_000  # no model reads so many; tokenizers without a limit say a number far beyond it

# What a loader cannot heed is refused, rather than ignored without a word.
UNHEEDED = {
    "sentence-transformers": (),
    "minilm": ("path", "revision", "min_pixels", "max_pixels"),
    "wordllama": ("path", "revision", "instruction", "attention", "min_pixels", "max_pixels", "max_tokens", "adapter"),
    "efficientnet-lite0": (
        "path",
        "revision",
        "instruction",
        "attention",
        "min_pixels",
        "max_pixels",
        "max_tokens",
        "adapter",
    ),
    "open_clip": ("instruction", "attention", "min_pixels", "max_pixels", "max_tokens", "adapter"),
}


class Model:
    """A loaded embedder.

    `embed` and `embed_images` are all that most callers need. The embedding loop calls their two halves: `prepare_*`,
    which works on the processor's side and may run in another thread, and `vectors`, the forward pass.
    """

    def __init__(self, entry: Embedder, name: str, network) -> None:
        self.entry, self.name, self.network = entry, name, network
        self.prompt = entry.instruction
        if self.is_chat_model and self.prompt:
            self.prompt = punctuated(self.prompt)

    @property
    def is_chat_model(self) -> bool:
        return "message" in self.network.modalities

    @property
    def dimensions(self) -> int | None:
        return self.entry.dimensions or self.network.get_embedding_dimension()

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """(n, d) float32 of unit norm, in the order of the texts. Raises UserError as `vectors` does."""
        lengths = [len(text) for text in texts]
        return self._in_batches(texts, batches_by_length(lengths, self.entry.batch_size), self.prepare_texts)

    def embed_images(self, images: Sequence) -> np.ndarray:
        """(n, d) float32 of unit norm, of images given as paths or as PIL images.

        Raises UserError as `vectors` and `read_image` do.
        """
        size = self.entry.batch_size
        batches = [list(range(start, min(start + size, len(images)))) for start in range(0, len(images), size)]
        return self._in_batches(images, batches, self.prepare_images)

    def _in_batches(self, items, batches, prepare) -> np.ndarray:
        parts = [self.vectors(prepare([items[i] for i in batch])) for batch in batches]
        if not parts:
            return np.empty((0, self.dimensions or 0), np.float32)
        embedded = np.concatenate(parts)
        result = np.empty_like(embedded)
        result[np.concatenate(batches)] = embedded
        return result

    def prepare_texts(self, texts: list[str]) -> dict:
        """The processor's output for one batch: padded token ids and their mask.

        Raises UserError for a text that gives no tokens.
        """
        self._need("text")
        return self.tokens(texts)

    def tokens(self, texts: list[str]) -> dict:
        """`prepare_texts` without its question whether the entry wants texts."""
        features = self.network.preprocess(texts, prompt=self.prompt)
        bare = _without_tokens(features)
        if bare is not None:
            raise UserError(
                f"embedders.{self.name}: the tokenizer makes no tokens of the text {texts[bare][:60]!r}; "
                "give a text with words, and a checkpoint with its tokenizer files"
            )
        return features

    def longest_text(self) -> int | None:
        """Tokens of the longest text that is read whole, instruction and markers included; None: no limit is known."""
        first = self.network[0]
        padded = getattr(first, "processing_kwargs", {}).get("text", {}).get("max_length")
        limit = padded or getattr(first, "context_length", None) or self.network.max_seq_length
        return int(limit) if limit and limit < UNLIMITED_TOKENS else None

    def cut(self, texts: list[str]) -> np.ndarray:
        """(n,) bool: which texts are longer than the model reads, so that their ends are lost."""
        limit, first = self.longest_text(), self.network[0]
        if limit is None:
            return np.zeros(len(texts), bool)
        if hasattr(first, "cut"):
            return first.cut(texts)
        whole = {"max_length": UNLIMITED_TOKENS, "padding": True, "return_attention_mask": True}
        features = self.network.preprocess(texts, prompt=self.prompt, processing_kwargs={"text": whole})
        if "cu_seq_lens_q" in features:  # flash attention: texts behind one another, unpadded
            return (features["cu_seq_lens_q"].diff() > limit).numpy()
        return (features["attention_mask"].sum(dim=1) > limit).numpy()

    def prepare_images(self, images: list) -> dict:
        """The processor's output for one batch: pixel values, and token ids for chat models."""
        self._need("image")
        opened = [image if isinstance(image, Image.Image) else read_image(image) for image in images]
        return self.network.preprocess([image.convert("RGB") for image in opened], prompt=self.prompt)

    def _need(self, modality: str) -> None:
        if modality not in self.entry.modalities:
            raise UserError(
                f"embedders.{self.name}.modalities: {modality} is not among them; this model embeds no {modality}s"
            )

    def vectors(self, features: dict) -> np.ndarray:
        """The forward pass, the cut to the first dimensions and the norm: (n, d) float32.

        Raises UserError if the model's output is not a number or all zeros, or has fewer dimensions than are kept.
        """
        what, lower = f"embedders.{self.name}", f"lower batch_size (now {self.entry.batch_size})"
        if self.is_chat_model:
            lower += ", max_pixels or max_tokens"
        with torch.inference_mode(), room_on_gpu(what, lower):
            for key, value in features.items():
                if isinstance(value, torch.Tensor):
                    features[key] = value.to(self.network.device)
            output = self.network(features)["sentence_embedding"]
            values = output.float().cpu().numpy().astype(np.float64)
        if self.entry.dimensions:
            self._check_dimensions(values.shape[1])
            values = values[:, : self.entry.dimensions]
        norms = np.linalg.norm(values, axis=1, keepdims=True)
        if not (np.isfinite(norms).all() and (norms > 0).all()):
            raise UserError(
                f"embedders.{self.name}: an embedding is not a number or all zeros; "
                "set dtype: float32, and if it is, the checkpoint is broken"
            )
        return (values / norms).astype(np.float32)

    def _check_dimensions(self, available: int | None) -> None:
        if available and self.entry.dimensions and self.entry.dimensions > available:
            raise UserError(
                f"embedders.{self.name}.dimensions: must be <= {available}, the model's (got {self.entry.dimensions})"
            )

    def facts(self) -> dict:
        """What the model turned out to be, for the record beside the embeddings."""
        first = self.network[0]
        architecture = type(getattr(first, "model", None) or getattr(first, "network", None) or first).__name__
        device = self.network.device
        return {
            "architecture": architecture,
            "parameters": sum(parameter.numel() for parameter in self.network.parameters()),
            "dimensions": self.dimensions,
            "dtype": self.entry.dtype,
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
            "commit": getattr(getattr(getattr(first, "model", None), "config", None), "_commit_hash", None),
            "last_token": self.last_token(),
            "libraries": library_versions(),
        }

    def last_token(self) -> str | None:
        """Of chat models: the last token of a text, whose hidden state is the embedding (open point of papers.md C)."""
        if not (self.is_chat_model and "text" in self.entry.modalities):
            return None
        features = self.tokens(["a"])
        ids = features["input_ids"].reshape(-1)
        if "attention_mask" in features:
            ids = ids[features["attention_mask"].reshape(-1).bool()]
        return self.network.tokenizer.decode([int(ids[-1])])


def _without_tokens(features: dict) -> int | None:
    """The first row of padded token ids that holds none, if there is one; without a mask, of ids that are all empty."""
    ids = features.get("input_ids")
    if ids is None or ids.ndim != 2:  # a bag of words has flat ids; a text without a word shows in its vector of zeros
        return None
    mask = features.get("attention_mask", torch.ones_like(ids))
    empty = (mask.sum(dim=1) == 0).nonzero()
    return int(empty[0]) if len(empty) else None


def load(entry: Embedder, device: str | None = None, name: str | None = None, threads: int | None = None) -> Model:
    """Loads the embedder of a config entry.

    device: of torch; by default cuda, else mps, else cpu. name: of the entry, for messages.
    threads: of torch on the CPU; by default what OMP_NUM_THREADS says.
    Raises UserError, one line with the key and the mending, for a folder, package or hub that is missing, weights or
    an adapter that do not fit, and a setting or modality that the checkpoint does not have.
    """
    name = name or entry.path or entry.loader
    for key in UNHEEDED[entry.loader]:
        if getattr(entry, key) is not None:
            raise UserError(f"embedders.{name}.{key}: the loader {entry.loader} cannot heed it; remove it")
    if threads:
        torch.set_num_threads(threads)
    model = Model(entry, name, _network(entry, name, pick_device(device, name)))
    model.network.eval()
    for modality in entry.modalities:
        if not model.network.supports(modality):
            has = [one for one in ("text", "image") if model.network.supports(one)]
            raise UserError(
                f"embedders.{name}.modalities: the checkpoint embeds no {modality}s; set modalities: [{', '.join(has)}]"
            )
    model._check_dimensions(model.network.get_embedding_dimension())
    _check_tokenizer(model)
    _check_neighbours(model)
    return model


def _network(entry: Embedder, name: str, device: str):
    """The SentenceTransformer of an entry, or what looks like one; in eval mode or not."""
    if entry.loader == "efficientnet-lite0":
        from .efficientnet import EfficientNetFeatures

        module = EfficientNetFeatures.from_file(*packaged_files("efficientnet-lite0", name))
        return module.to(device).to(getattr(torch, entry.dtype))
    _quiet()
    from sentence_transformers import SentenceTransformer

    from .modules import BagOfWords, OpenClip

    if entry.loader in ("sentence-transformers", "minilm"):
        return _sentence_transformer(entry, name, device)
    if entry.loader == "wordllama":
        module = BagOfWords.from_files(*packaged_files("wordllama", name))
    else:
        path, pretrained, files = open_clip_source(entry, name)
        with _one_line(entry, name, on_hub=files is None), _silent():
            module = OpenClip.from_checkpoint(path, pretrained)
    return SentenceTransformer(modules=[module], device=device).to(getattr(torch, entry.dtype))


def _sentence_transformer(entry: Embedder, name: str, device: str):
    from sentence_transformers import SentenceTransformer

    from .modules import project_patches

    key = f"embedders.{name}"
    if entry.loader == "minilm":
        (folder,) = packaged_files("minilm", name)
    else:
        folder = local_folder(entry.path, f"{key}.path")
        if folder and entry.revision:
            raise UserError(f"{key}.revision: means nothing for a folder; remove it")
        if folder and (folder / "adapter_config.json").exists():  # its base model would escape the cache's fingerprint
            raise UserError(f"{key}.path: {entry.path} is an adapter; give it as adapter, and its base model as path")
    with _one_line(entry, name, on_hub=folder is None), _load_reports() as reports:
        network = SentenceTransformer(
            str(folder or entry.path),
            device=device,
            revision=entry.revision,
            trust_remote_code=entry.trust_remote_code,
            local_files_only=folder is not None,
            model_kwargs={"dtype": getattr(torch, entry.dtype)}
            | ({"attn_implementation": entry.attention} if entry.attention else {}),
        )
    missing = sorted(set(re.findall(r"^\s*(\S+)\s*\|\s*MISSING", "\n".join(reports), re.MULTILINE)))
    missing = [weight for weight in missing if "pooler" not in weight]  # BERT's pooler is not what embeds
    if missing:
        raise UserError(
            f"{key}.path: {folder or entry.path} has no weights for {missing[0]}"
            f"{f' and {len(missing) - 1} more' if missing[1:] else ''}; they would be random: get the whole checkpoint"
        )
    _check_pooling(network, entry, folder, key)
    project_patches(network)
    if entry.adapter:
        _add_adapter(network, entry, name)
    if entry.min_pixels or entry.max_pixels:
        _limit_pixels(network, entry, key)
    if entry.max_tokens:
        _limit_tokens(network, entry.max_tokens, key)
    if getattr(network.config, "model_type", None) in ("siglip", "siglip2"):
        _pad_to_full_length(network)
    default = network.prompts.get(network.default_prompt_name) if network.default_prompt_name else None
    if default and entry.instruction is None:
        print(f"{key}.instruction: none, though the checkpoint's own is {default!r}", file=sys.stderr)
    return network


def _check_pooling(network, entry: Embedder, folder: Path | None, key: str) -> None:
    """A chat model must say which hidden state is its embedding; sentence-transformers would take the mean of all."""
    from sentence_transformers.util import load_file_path

    if not (network.supports("message") and getattr(network[0], "module_output_name", "") == "token_embeddings"):
        return
    source = {"revision": entry.revision, "local_files_only": folder is not None}
    if load_file_path(str(folder or entry.path), "modules.json", **source) is None:
        raise UserError(
            f"{key}.path: {entry.path} has no modules.json, so its pooling and chat format would be guessed; "
            "save it as a sentence-transformers model with those it was trained with"
        )


def _add_adapter(network, entry: Embedder, name: str) -> None:
    key = f"embedders.{name}.adapter"
    folder = local_folder(entry.adapter, key)
    with _one_line(entry, name, on_hub=folder is None, key="adapter"), _load_reports():
        if not network.has_peft_compatible_model():
            raise UserError(f"{key}: a {type(network[0]).__name__} takes no adapter; remove it")
        report = network.transformers_model.load_adapter(
            str(folder or entry.adapter), adapter_kwargs={"local_files_only": folder is not None}
        )
    for weights, what in (
        (report.missing_keys, "lacks"),
        (report.unexpected_keys, "has weights unknown to the model:"),
    ):
        if weights:
            raise UserError(f"{key}: {entry.adapter} was trained on another model ({what} {sorted(weights)[0]})")


def _limit_pixels(network, entry: Embedder, key: str) -> None:
    """Sets the limits of an image processor that works by area; others resize to one fixed size."""
    processor = getattr(network.processor, "image_processor", None)
    size = dict(getattr(processor, "size", None) or {})
    for limit, edge in (("min_pixels", "shortest_edge"), ("max_pixels", "longest_edge")):
        value = getattr(entry, limit)
        if value is None:
            continue
        if not (size.get("shortest_edge") and size.get("longest_edge")):
            raise UserError(f"{key}.{limit}: this checkpoint's image processor has no such limit; remove it")
        size[edge] = value
    if size.get("longest_edge") and size["shortest_edge"] > size["longest_edge"]:
        raise UserError(
            f"{key}.min_pixels: {size['shortest_edge']} is more than max_pixels {size['longest_edge']}; set both"
        )
    processor.size = size


def _limit_tokens(network, max_tokens: int, key: str) -> None:
    config = network.config
    text_config = config.get_text_config() if config is not None else None
    longest = getattr(text_config, "max_position_embeddings", None)
    if getattr(config, "model_type", None) in ("siglip", "siglip2") and max_tokens != longest:
        raise UserError(f"{key}.max_tokens: SigLIP reads texts of {longest} tokens, padded or cut; remove it")
    if longest and max_tokens > longest:
        raise UserError(f"{key}.max_tokens: must be <= {longest}, the model's positions (got {max_tokens})")
    network.max_seq_length = max_tokens


def _pad_to_full_length(network) -> None:
    """SigLIP was trained on texts padded to full length without a mask, and reads the last position, padding or not.

    sentence-transformers pads to the longest text of the batch, which makes an embedding depend on its neighbours.
    """
    length = network.config.get_text_config().max_position_embeddings
    padding = {"padding": "max_length", "max_length": length, "return_attention_mask": False}
    network[0].processing_kwargs = {**network[0].processing_kwargs, "text": padding}


def _check_tokenizer(model: Model) -> None:
    """Without files of one, transformers makes a tokenizer that holds no words: all become the same unknown token.

    Raises UserError.
    """
    if "text" not in model.entry.modalities:
        return
    ids = model.tokens(["a cube", "a cone"]).get("input_ids")  # as long in words and in letters
    if ids is not None and ids.ndim == 2 and bool((ids[0] == ids[1]).all()):
        raise UserError(
            f"embedders.{model.name}: the tokenizer makes the same tokens of different words; "
            "give a checkpoint with its tokenizer files"
        )


def _check_neighbours(model: Model) -> None:
    """A text must embed the same beside a longer one: a model that reads its padding is not measured in batches.

    Raises UserError.
    """
    if "text" not in model.entry.modalities or model.entry.batch_size == 1:
        return
    texts = ["a cube", "a cube beside a rather longer description of a sphere"]
    together = model.vectors(model.prepare_texts(texts))[0]
    alone = model.vectors(model.prepare_texts(texts[:1]))[0]
    if float(together @ alone) < 0.99:
        raise UserError(
            f"embedders.{model.name}.batch_size: this model embeds a text differently beside a longer one; set it to 1"
        )


@contextmanager
def _one_line(entry: Embedder, name: str, on_hub: bool, key: str = "path"):
    """Turns what the libraries raise for a bad checkpoint into one line with the config key."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        source = getattr(entry, key) or entry.loader
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:300]
        if is_out_of_memory(error):
            mend = "the GPU has not enough free memory: set dtype: bfloat16, or give it a GPU with more"
        elif "trust_remote_code" in str(error):
            mend = "set trust_remote_code: true if you trust its source"
        elif on_hub:
            mend = "correct the id and the revision, give a local folder, or download it where the hub can be reached"
        elif key == "adapter":
            mend = "give the folder of a PEFT adapter that was trained on this model"
        else:
            mend = "check that the folder holds a whole checkpoint and that the settings fit it"
        raise UserError(f"embedders.{name}.{key}: {source} cannot be loaded ({said}); {mend}") from error


@contextmanager
def _silent():
    """open_clip says each step, and each error a second time, through the root logger."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


@contextmanager
def _load_reports():
    """Collects what transformers logs while it loads: weights that are missing are only logged, then random."""
    reports: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            reports.append(re.sub(r"\x1b\[[0-9;]*m", "", record.getMessage()))

    library = logging.getLogger("transformers")
    before = library.handlers
    library.handlers = [Collector()]
    try:
        yield reports
    finally:
        library.handlers = before


def _quiet() -> None:
    """No bars and chatter of libraries in the log: the embedding loop has a progress line of its own."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    import transformers

    transformers.utils.logging.disable_progress_bar()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # a hub out of reach is one error, not ten retries


def pick_device(device: str | None, name: str) -> str:
    if device is None:
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(
            f"embedders.{name}: device {device} was asked for, but torch sees no GPU; leave it out or use cpu"
        )
    return device


def punctuated(instruction: str) -> str:
    """An instruction of a chat model ends with punctuation, a full stop if it has none (Qwen3-VL-Embedding's rule)."""
    instruction = instruction.strip()
    ends = instruction and unicodedata.category(instruction[-1]).startswith("P")
    return instruction if ends or not instruction else instruction + "."


def batches_by_length(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Indices in batches of items of about the same length, so that little is padded; the longest first, so that
    a batch too large for memory fails at once. Depends on nothing but its arguments.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    return [order[start : start + size] for start in range(0, len(order), size)]


def read_image(source: str | Path | bytes) -> Image.Image:
    """An RGB image from a file or its bytes. Raises UserError for one that is missing, broken or too large."""
    shown = "image" if isinstance(source, bytes) else source
    try:
        image = Image.open(BytesIO(source) if isinstance(source, bytes) else source)
        if image.width * image.height > MAX_IMAGE_PIXELS:
            raise UserError(
                f"{shown}: {image.width} x {image.height} pixels are more than {MAX_IMAGE_PIXELS}; make it smaller"
            )
        return image.convert("RGB")
    except FileNotFoundError:
        raise UserError(f"{shown}: no such file") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise UserError(f"{shown}: not a readable image ({error})") from None


def library_versions() -> dict[str, str]:
    return {
        library: version_of(library)
        for library in ("torch", "transformers", "sentence-transformers", "peft", "open-clip-torch")
    }
