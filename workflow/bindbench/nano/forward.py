"""The forward pass of a nano model for training: the same network as transformers', in batches of one image size.

transformers splits images of any size into sequences of their own and masks texts of any length. Here every image has the
same grid and texts are padded on the right, where causal attention never looks, so that a batch is a few large products;
and attention is written out, since the fused one's backward pass is slow on a CPU. Tests hold it to the original.
"""

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedTokenizerFast, Qwen3VLModel
from transformers.models.qwen3_vl import modeling_qwen3_vl as original

from .model import MERGE, PATCH
from .scenes import IMAGE_PX

GRID = IMAGE_PX // PATCH
TOKENS = (GRID // MERGE) ** 2  # visual tokens of an image
BLOCKED = -1e4  # added to the attention scores of what comes later
TEXT_PARTS = 4  # of a batch of texts, by length
PADDED_TO = 16  # texts are padded to a multiple: few shapes to compile for


def _rotated(states: torch.Tensor) -> torch.Tensor:
    half = states.shape[-1] // 2
    return torch.cat((-states[..., half:], states[..., :half]), -1)


def vision_block(block: nn.Module, states: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, heads: int):
    """One block of the vision tower. states: (images, patches, width)."""
    n_images, n_patches, width = states.shape
    mixed = block.attn.qkv(block.norm1(states)).view(n_images, n_patches, 3, heads, width // heads)
    query, key, value = mixed.permute(2, 0, 3, 1, 4).unbind(0)
    query, key = query * cos + _rotated(query) * sin, key * cos + _rotated(key) * sin
    weights = torch.softmax((query * block.attn.scaling) @ key.transpose(-1, -2), -1).to(value.dtype)
    attended = (weights @ value).transpose(1, 2).reshape(n_images, n_patches, width)
    states = states + block.attn.proj(attended)
    hidden = functional.gelu(block.mlp.linear_fc1(block.norm2(states)), approximate="tanh")
    return states + block.mlp.linear_fc2(hidden)


def decoder_layer(
    layer: nn.Module,
    states: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    later: torch.Tensor,
    heads: int,
    key_heads: int,
    head_width: int,
    epsilon: float,
):
    """One layer of the decoder. states: (sequences, tokens, width); later: (tokens, tokens), BLOCKED above the diagonal."""
    n, length, width = states.shape
    attention, group = layer.self_attn, heads // key_heads
    normed = functional.rms_norm(states, (width,), layer.input_layernorm.weight, epsilon)

    def split(projected: torch.Tensor, count: int) -> torch.Tensor:
        return projected.view(n, length, count, head_width)

    query, key = split(attention.q_proj(normed), heads), split(attention.k_proj(normed), key_heads)
    query = functional.rms_norm(query, (head_width,), attention.q_norm.weight, epsilon).transpose(1, 2)
    key = functional.rms_norm(key, (head_width,), attention.k_norm.weight, epsilon).transpose(1, 2)
    value = split(attention.v_proj(normed), key_heads).transpose(1, 2)
    query, key = query * cos + _rotated(query) * sin, key * cos + _rotated(key) * sin
    # Heads that share their keys are one product: (n, key_heads, group * length, head_width).
    query = (query * attention.scaling).reshape(n, key_heads, group * length, head_width)
    scores = (query @ key.transpose(-1, -2)).view(n, key_heads, group, length, length) + later
    weights = torch.softmax(scores, -1).to(value.dtype).view(n, key_heads, group * length, length)
    attended = (weights @ value).view(n, heads, length, head_width).transpose(1, 2).reshape(n, length, -1)
    states = states + attention.o_proj(attended)
    normed = functional.rms_norm(states, (width,), layer.post_attention_layernorm.weight, epsilon)
    return states + layer.mlp.down_proj(functional.silu(layer.mlp.gate_proj(normed)) * layer.mlp.up_proj(normed))


class Forward:
    """A model with what its forward pass needs that no batch changes."""

    def __init__(self, model: Qwen3VLModel, tokenizer: PreTrainedTokenizerFast, compiled: bool = False):
        """compiled: the vision tower through torch.compile, which needs a C++ compiler: a fifth faster after a minute."""
        self.model, self.tokenizer = model, tokenizer
        self.vision_block = torch.compile(vision_block, dynamic=False) if compiled else vision_block
        vision = model.visual
        grid = torch.tensor([[1, GRID, GRID]])
        self.position_indices, self.position_weights = original.get_vision_interpolation_indices_and_weights(
            grid,
            num_grid_per_side=vision.num_grid_per_side,
            mode=vision.interpolation_mode,
            align_corners=vision.interpolation_align_corners,
            spatial_merge_size=MERGE,
            kwargs={},
        )
        cos, sin = vision.rotary_pos_emb(torch.zeros(1), original.get_vision_position_ids(grid, MERGE, kwargs={}))
        self.vision_cos, self.vision_sin = cos[None, None], sin[None, None]
        self.before = self.ids("<|im_start|>user\n")
        self.after = self.ids("<|im_end|>\n<|im_start|>assistant\n")
        start, end = self.ids("<|vision_start|>"), self.ids("<|vision_end|>")
        self.image_at = len(self.before) + 1
        self.image_ids = torch.tensor(self.before + start + [model.config.image_token_id] * TOKENS + end + self.after)
        self.image_positions = self._image_positions(len(end + self.after))

    def _image_positions(self, behind: int) -> torch.Tensor:
        """(3, tokens): text counts on all three axes, a visual token has its row and column (M-RoPE)."""
        side = GRID // MERGE
        row, column = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
        visual = torch.stack([torch.zeros(TOKENS, dtype=torch.long), row.flatten(), column.flatten()]) + self.image_at
        ahead = torch.arange(self.image_at).expand(3, -1)
        rest = torch.arange(behind).expand(3, -1) + int(visual.max()) + 1
        return torch.cat([ahead, visual, rest], 1)

    def ids(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def see(self, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """pixels: (n, 160, 160, 3) uint8. Returns visual tokens and those of DeepStack, (n, 25, width) each."""
        vision, n, side = self.model.visual, len(pixels), GRID // MERGE
        patches = (pixels.to(self.model.dtype) / 127.5 - 1).view(n, side, MERGE, PATCH, side, MERGE, PATCH, 3)
        patches = patches.permute(0, 1, 4, 2, 5, 7, 3, 6).reshape(n, GRID * GRID, 3 * PATCH * PATCH)
        # Both frames of the patch embedding see the one image.
        projection = vision.patch_embed.proj
        states = functional.linear(patches, projection.weight.sum(2).flatten(1), projection.bias)
        positions = vision.pos_embed(self.position_indices) * self.position_weights[:, :, None].to(states.dtype)
        states = states + positions.sum(1)
        cos, sin = self.vision_cos.to(states.dtype), self.vision_sin.to(states.dtype)
        deepstack = None
        for number, block in enumerate(vision.blocks):
            states = self.vision_block(block, states, cos, sin, self.model.config.vision_config.num_heads)
            if number in vision.deepstack_visual_indexes:
                deepstack = self._merged(vision.deepstack_merger_list[0], states)
        return self._merged(vision.merger, states), deepstack

    def _merged(self, merger: nn.Module, states: torch.Tensor) -> torch.Tensor:
        return merger(states.reshape(-1, states.shape[-1])).view(len(states), TOKENS, -1)

    def decode(
        self,
        layers: nn.ModuleList,
        states: torch.Tensor,
        positions: torch.Tensor,
        deepstack: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Hidden states after some decoder layers, not normed. positions: (3, tokens), the same for all sequences."""
        text, config = self.model.language_model, self.model.config.text_config
        cos, sin = text.rotary_emb(states, positions[:, None])
        length = states.shape[1]
        later = torch.full((length, length), BLOCKED, dtype=states.dtype).triu(1)
        sizes = (config.num_attention_heads, config.num_key_value_heads, config.head_dim, config.rms_norm_eps)
        for number, layer in enumerate(layers):
            states = decoder_layer(layer, states, cos[:, None], sin[:, None], later, *sizes)
            if deepstack is not None and number == 0:
                first, last = self.image_at, self.image_at + TOKENS
                seen = states[:, first:last] + deepstack.to(states.dtype)
                states = torch.cat([states[:, :first], seen, states[:, last:]], 1)
        return states

    def normed(self, states: torch.Tensor) -> torch.Tensor:
        norm = self.model.language_model.norm
        return functional.rms_norm(states, states.shape[-1:], norm.weight, self.model.config.text_config.rms_norm_eps)

    def embedded(self, states: torch.Tensor) -> torch.Tensor:
        """(n, width) hidden states of last tokens as float32 vectors of unit norm."""
        return functional.normalize(self.normed(states).float(), dim=-1)

    def decode_in_halves(
        self, states: torch.Tensor, positions: torch.Tensor, deepstack: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Hidden states after half of the decoder's layers, and after all of them; arguments as of `decode`."""
        layers = self.model.language_model.layers
        half = len(layers) // 2
        middle = self.decode(layers[:half], states, positions, deepstack)
        return middle, self.decode(layers[half:], middle, positions)

    def image_states(
        self, seen: torch.Tensor, deepstack: torch.Tensor, captions: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Hidden states (n, tokens, width) of images as the user's turn, followed by captions (n, length) of token ids.

        After half of the layers, and after all. The embedding is the last state of token `len(self.image_ids) - 1`:
        captions come later and change nothing in it.
        """
        words = self.model.language_model.embed_tokens
        frame = words(self.image_ids)[None].expand(len(seen), -1, -1)
        first, last = self.image_at, self.image_at + TOKENS
        parts = [frame[:, :first], seen.to(frame.dtype), frame[:, last:]]
        positions = self.image_positions
        if captions is not None:
            parts.append(words(captions))
            next_position = int(positions.max()) + 1
            more = torch.arange(captions.shape[1]).expand(3, -1) + next_position
            positions = torch.cat([positions, more], 1)
        return self.decode_in_halves(torch.cat(parts, 1), positions, deepstack)

    def embed_images(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.embedded(self.image_states(*self.see(pixels))[1][:, -1])

    def text_ids(self, texts: list[str]) -> list[list[int]]:
        """Token ids of each text in the user's turn."""
        encoded = self.tokenizer(texts, add_special_tokens=False)["input_ids"]
        return [self.before + ids + self.after for ids in encoded]

    def embed_texts(self, texts: list[str]) -> torch.Tensor:
        """(n, width). Texts of like length go through the model together, so that little is padded."""
        vectors = {}
        for part, ids, _, states in self.text_states(self.text_ids(texts)):
            last = torch.tensor([len(row) - 1 for row in ids])
            found = self.embedded(states[torch.arange(len(ids)), last])
            vectors |= dict(zip(part, found, strict=True))
        return torch.stack([vectors[index] for index in range(len(texts))])

    def text_states(self, ids: list[list[int]]):
        """Yields parts of the texts, by length: their numbers, their token ids, and their hidden states (texts, tokens, width)
        after half of the layers and after all.
        """
        order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
        size = -(-len(order) // TEXT_PARTS)
        for start in range(0, len(order), size):
            part = order[start : start + size]
            chosen = [ids[index] for index in part]
            padded = padded_ids(chosen)
            states = self.model.language_model.embed_tokens(padded)
            yield part, chosen, *self.decode_in_halves(states, torch.arange(padded.shape[1]).expand(3, -1))

    def word_vectors(self, words: list[str]) -> torch.Tensor:
        """(n, width): mean of the token embeddings of each word as it stands in a sentence, behind a space."""
        ids = [self.ids(f" {word}") for word in words]
        length = max(map(len, ids))
        index = torch.tensor([row + [0] * (length - len(row)) for row in ids])
        share = torch.tensor([[1 / len(row)] * len(row) + [0] * (length - len(row)) for row in ids])
        weight = self.model.language_model.embed_tokens.weight
        return (weight[index] * share[..., None].to(weight.dtype)).sum(1)


def padded_ids(ids: list[list[int]], filler: int = 0) -> torch.Tensor:
    """(n, length) long: padded on the right, to a multiple of PADDED_TO."""
    length = -(-max(map(len, ids)) // PADDED_TO) * PADDED_TO
    return torch.tensor([row + [filler] * (length - len(row)) for row in ids])
