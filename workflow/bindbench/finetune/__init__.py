"""Finetuning of an embedder on binding triplets (section 4, B.5), of texts or images (Appendix E), and LiNeS (C.2).

`training.finetune` makes an adapter of a config entry and a table of triplets; `lines.scale_adapter` rescales one. What is
trained is what `embedders.loading` loads: same tokens, same instruction, same pooling. `base` alone knows that room.
"""
