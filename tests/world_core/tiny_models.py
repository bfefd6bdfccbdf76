"""Random models of two layers in the layout of the Hugging Face hub, with a tokenizer of words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*SPECIAL, "how", "do", "i", "list", "open", "files", "a", "b", "c", "the", "of", "and"]
SIZES = {
    "vocab_size": len(WORDS),
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}


def torch_and_transformers(seed: int) -> tuple[Any, Any]:
    """Return the two packages with torch's random numbers seeded; skip the test without them."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="torch is not installed")
    torch.manual_seed(seed)
    return torch, transformers


def write_words(folder: Path) -> None:
    """Write a tokenizer of whole words with BERT's special tokens."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    numbers = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token=WORDS[1]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    special = {
        f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")
    }
    special |= {"eos_token": "[SEP]"}  # as in XLM-RoBERTa
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizerFast", **special})
    )


def make_bert(folder: Path) -> Path:
    """Write a random BERT."""
    _, transformers = torch_and_transformers(1)
    folder.mkdir()
    config = transformers.BertConfig(max_position_embeddings=64, **SIZES)
    transformers.BertModel(config).save_pretrained(str(folder))
    write_words(folder)
    return folder


def make_m3(folder: Path) -> Path:
    """Write a random XLM-RoBERTa with the two heads of BGE-M3."""
    torch, transformers = torch_and_transformers(2)
    folder.mkdir()
    config = transformers.XLMRobertaConfig(max_position_embeddings=66, pad_token_id=0, **SIZES)
    transformers.XLMRobertaModel(config).save_pretrained(str(folder))
    write_words(folder)
    for name, outputs in (("sparse_linear.pt", 1), ("colbert_linear.pt", 32)):
        torch.save(torch.nn.Linear(32, outputs).state_dict(), folder / name)
    return folder


def make_cross(folder: Path) -> Path:
    """Write a random cross encoder: an XLM-RoBERTa that gives a pair of texts one number."""
    _, transformers = torch_and_transformers(3)
    folder.mkdir()
    config = transformers.XLMRobertaConfig(
        max_position_embeddings=66,
        pad_token_id=0,
        num_labels=1,
        type_vocab_size=2,
        initializer_range=0.7,  # so wide that pairs differ in their scores
        **SIZES,
    )
    transformers.XLMRobertaForSequenceClassification(config).save_pretrained(str(folder))
    write_words(folder)
    return folder
