"""Writes goldens/bpe: a small byte-level BPE that Hugging Face's tokenizers learned from the
sentences below, and what it makes of many texts. Needs the packages tokenizers, numpy and
safetensors:

    python3 tests/goldens/make_bpe.py [--vocab vocab.json --merges merges.txt --texts FILE...]

vocab.json and merges.txt are the vocabulary. cases.safetensors has the texts (`text`: all bytes,
`text_ends`) and their tokens (`ids`, `ids_ends`); `special` is 1 for the cases in which
<|endoftext|> is a token. With --vocab and --merges, only compares: it writes cases of that
vocabulary, and of whole files, to cases.safetensors in the current folder, which
BRAID_BPE=<folder with the three files> lets the test read.
"""

import argparse
import pathlib
import random
import unicodedata

import numpy
from safetensors.numpy import save_file
from tokenizers import ByteLevelBPETokenizer

FOLDER = pathlib.Path(__file__).resolve().parent / "bpe"
END = "<|endoftext|>"

SENTENCES = """The quick brown fox jumps over the lazy dog. It's what they've said: we'll see.
Don't, can't, won't; I'd rather not. You're sure? I'm not. He'LL say 'twas so'.
In 1969 there were 3,141,592 of them, at 12:30 on 24/12/2023; that's 99.9 %.
for (int i = 0; i < 10; ++i) {\n    total += values[i];\n\n\treturn total;\n}
Die Größe der Straße überrascht; où est l'été, naïve façade? Cześć, świecie! Ærøskøbing.
Съешь же ещё этих мягких французских булок. Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία.
日本語の文章です。 中文句子也在这里。 한국어 문장입니다. ภาษาไทย हिन्दी में वाक्य العربية עברית
emoji 😀👍🏽 and ½ ² ⅷ ٣ 四 – “quotes” … € £ ≈ ∑
"""

FIXED = [
    "", " ", "  ", "   a", "a   ", "a  b", " a", "\n", "\n\n", " \n a", "a\n\n b", "\t\tx", "\r\n",
    "'s", " 's", "it's", "it'S", "''s", "'ll'd've're'm't", "x'", "x's's", "!'s", "1's", "'sa",
    "a1b2", " 12 ab", "a.b", " ...", "$ 1", "\u00a0a", "a\u00a0 b", " \u00a0", "\u3000日本",
    "don't stop", "naïve café", "½²ⅷ٣四", "a\u0301", "👍🏽👍", "\x00\x01\x7f", "a\x85b", "\u200bx",
    "\ufeffa", "\U0010ffff", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "<|endoftext|>",
    "a<|endoftext|>b", "<|endoftext|><|endoftext|> c", "<|endoftext", END[1:],
    "the " * 20, " " * 40 + "x", "=" * 33, "ab\u2028cd \u2003 e",
]


def random_texts(generator, count):
    """Characters of each class, so that every rule of the splitting meets every other."""
    alphabets = [" ", "\n\t\r\x0b\u00a0\u2003", "abcsStTrReEvVmMlLdD", "'", "'", "0123456789½Ⅷ٣",
                 ".,!?-_()\"", "äßéЖщλ日本語한글", "😀👍\u0301\u200d", "<|>"]
    for _ in range(count):
        length = generator.randrange(1, 30)
        yield "".join(generator.choice(generator.choice(alphabets)) for _ in range(length))
    known = [c for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
    for _ in range(count):
        length = generator.randrange(1, 12)
        yield "".join(chr(generator.choice(known)) for _ in range(length))


def cases(tokenizer, texts):
    plain, special = tokenizer(), tokenizer()
    special.add_special_tokens([END])
    text, ids, text_ends, ids_ends, specials = bytearray(), [], [], [], []
    for t in texts:
        for is_special, how in ((0, plain), (1, special)):
            if is_special and END not in t:
                continue
            text += t.encode()
            ids += how.encode(t).ids
            assert how.decode(how.encode(t).ids, skip_special_tokens=False) == t
            text_ends.append(len(text))
            ids_ends.append(len(ids))
            specials.append(is_special)
    return {"text": numpy.frombuffer(bytes(text), numpy.uint8),
            "text_ends": numpy.array(text_ends, numpy.int32),
            "ids": numpy.array(ids, numpy.int32), "ids_ends": numpy.array(ids_ends, numpy.int32),
            "special": numpy.array(specials, numpy.uint8)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vocab")
    parser.add_argument("--merges")
    parser.add_argument("--texts", nargs="*", default=[])
    options = parser.parse_args()
    texts = FIXED + SENTENCES.splitlines(keepends=True) + [SENTENCES]
    count = 3000 if options.vocab else 150
    texts += list(random_texts(random.Random(5), count))
    texts += [pathlib.Path(path).read_text(encoding="utf-8") for path in options.texts]
    vocab, merges, out = options.vocab, options.merges, pathlib.Path(".")
    if not vocab:
        learned = ByteLevelBPETokenizer()
        learned.train_from_iterator([SENTENCES], vocab_size=420, min_frequency=2,
                                    special_tokens=[], show_progress=False)
        FOLDER.mkdir(exist_ok=True)
        learned.add_special_tokens([END])  # has no place in vocab.json yet
        vocab, merges = learned.save_model(str(FOLDER))
        text = pathlib.Path(vocab).read_text(encoding="utf-8").rstrip()
        size = learned.get_vocab_size(with_added_tokens=False)
        pathlib.Path(vocab).write_text(text[:-1] + f',"{END}":{size}}}\n', encoding="utf-8")
        out = FOLDER
    found = cases(lambda: ByteLevelBPETokenizer(vocab, merges), texts)
    save_file(found, out / "cases.safetensors")
    print(f"{len(found['ids_ends'])} cases, {len(found['ids'])} tokens")


if __name__ == "__main__":
    main()
