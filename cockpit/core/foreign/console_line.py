"""What a line that a program prints for people says: numbers under names, and the step or epoch they stand at.

Known are the habits of this field: `iter 10: loss 3.2, time 23ms` (nanoGPT), `step:  1  loss:  8.1  tps: 1,234`
(torchtitan), `iteration 100/ 1000 | lm loss: 7.1E+00 |` (Megatron), `Epoch: [0]  [ 10/1251]  loss: 6.9 (7.0)`
(torchvision), `Epoch [1/10], Step [5/50], Loss: 0.5`, `{'loss': 0.5, 'epoch': 0.1}` (transformers), `[100] acc=0.1`
(CLU), bars of tqdm and Keras.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cockpit.core.foreign.line_start import cleaned
from cockpit.core.foreign.places import kind_and_rank
from cockpit.core.foreign.rows import Row, row_of
from engines.contract.metric_names import TRAINING, VALIDATION

RESULTS = frozenset(
    """acc accuracy ap auc auprc auroc bertscore bleu bpb bpc cer chrf cider correlation dice dsc ece elbo epe error f1
    fid fvd hausdorff iou jaccard kappa kid loss losses lpips mae map mape mcc meteor mpjpe mrr mse ndcg nll pearson
    perplexity ppl precision psnr recall return reward rmse rouge score sensitivity smape spearman specificity ssim
    success wer""".split()
)
"""Words of the names of what a training is watched for: by them a line without a step is distinguished from prose."""
LONGEST_MARK = 2
"""Letters that may stand before such a word: `mIoU`, `aAcc`, `FWIoU`."""
LEFT_OUT = frozenset({"eta", "v_num"})
MULTIPLES = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9}

_NUMBER = (
    r"[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|nan|inf(?:inity)?)"
)
_UNIT = r"(?P<unit>\s?(?:%|[KMGT]i?B|[kKMB]|[munµ]?s|sec|seconds|min|m|h|W|°?C)?(?:/[A-Za-z]+)?|\s?[a-z]+/[a-z]+)"
_WORD = r"[A-Za-z_][\w./@+#-]*+"
_ENDS = r"(?=[\s,;|)/(]|$)"
_SAID = re.compile(
    rf"(?<![\w:./@-])(?P<name>{_WORD}(?: [A-Za-z_(][\w./@+#()%-]*+){{0,5}}+)[:=] ?(?P<value>{_NUMBER}){_UNIT}{_ENDS}",
    re.I,
)
_SPACED = re.compile(rf"(?P<name>{_WORD}(?: {_WORD})?) (?P<value>{_NUMBER}){_UNIT}{_ENDS}", re.IGNORECASE)
_APART = re.compile(r"\s*(?:[|;\[\]]|(?<!\d),|,(?!\d{3}(?!\d))|\s-(?=\s)|\s{2,})\s*")

_PLACE = re.compile(
    r"(?:(?:train(?:ing)?|learning|global|optimizer|at)[ _])?"
    r"(?P<what>epoch|step|iter(?:ation)?|it|batch|update|episode)"
    r"[ :=#]+(?P<number>\d[\d,]*(?:\.\d+)?)(?: ?/\d+| of \d+)?(?=[\s:,)]|$)[\s:,)]*",
    re.IGNORECASE,
)
_PLACE_WITHIN = re.compile(  # `Best model: epoch 6 val_loss: 0.5`, `saved at step 40`, `[my worker3] step 5 loss 0.1`
    r"(?:[^\d=]|(?<=[A-Za-z\d_])\d|(?<=[A-Za-z]-)\d)*?"
    r"(?:[:\]>)] ?|\b(?:at|from|in|of|for|after) |\bbest (?=\w+[ :=#]+[\d.,]+[\s:,)]+[A-Za-z]))"
    r"(?=(?:epoch|step|iter(?:ation)?|update|episode)[ :=#]+\d[\d,]*(?:\.\d+)?(?:[\s:,)/]|$))",
    re.IGNORECASE,
)
_EPOCH_AND_STEP = re.compile(
    r"\b(?:epoch(?:\((?P<part>\w+)\))?|train)(?: epoch)?:?\s*\[?\s*(\d+)\]?(?:/\d+)?[,:]?\s*"
    r"\[\s*(\d+)\s*/\s*\d+[^\]]*\]"
    r"|^\[(\d+),\s*(\d+)\]"  # PyTorch's first tutorial
    r"|\bepoch (\d+):\s+(\d+) */ *\d+ ",  # fairseq
    re.IGNORECASE,
)
_STEP_ALONE = re.compile(
    r"(?:^|\] )\[(\d+)(?:/\d+)?\]:?\s+(?=[A-Za-z])"  # CLU, XGBoost, `[50/100] loss=`
    r"|^(\d+): (?=[A-Za-z_]\w*[:=])"  # `50: loss: 1.5`
    r"|\biter\(\w+\)\s*\[\s*(\d+)/\d+\]"  # MMEngine
    r"|^(\d+)/(?:\d+|Unknown)\s+(?:\[[=>.]*\]|━+|-(?= ))",  # Keras
    re.IGNORECASE,
)
_BAR = re.compile(r"^(?P<about>.*?)\s*\d+%\|\|\s*(?P<step>\d+)/(?:\d+|\?)\s*\[(?P<said>[^\]]*)\]?(?P<behind>.*)$")
_LEVEL = re.compile(r"^.*?\b(?:INFO|DEBUG|WARNING)\b(?::[\w.]+:)?[\s:\]|-]*")
_PART = re.compile(
    r"(train(?:ing)?|val(?:id(?:at\w+)?)?|test(?:ing)?|eval(?:uat\w+)?)(?: set| phase)?[: ]+(?=[A-Z])", re.IGNORECASE
)
_EVALUATES = re.compile(r"(?:val|test|eval|sanity)", re.IGNORECASE)
_WORDS = re.compile(r"[^A-Za-z]+")
_SEPARATORS = re.compile(r"[\W_]+")


class Said(NamedTuple):
    """What a line says, its numbers as they are written; empty where it tells no step, no epoch."""

    numbers: dict[str, str]
    step: str = ""
    epoch: str = ""

    def row(self, time: float = math.nan) -> Row:
        step, epoch = (number(text) if text else math.nan for text in (self.step, self.epoch))
        return row_at({name: number(text) for name, text in self.numbers.items()}, step, epoch, time)


def row_at(values: Mapping[str, float], step: float, epoch: float, time: float) -> Row:
    """A row at its line's place, else at one that is among its values; but a count of steps alone places nothing."""
    row = row_of(values)
    if row.values:
        step, epoch = row.step if math.isnan(step) else step, row.epoch if math.isnan(epoch) else epoch
    return Row(row.values, step, epoch, time, row.group)


def number(text: str) -> float:
    """Of `1,234.5`, `1.2M`, `nan`."""
    multiple = MULTIPLES.get(text[-1])
    return float(text[:-1].replace(",", "")) * multiple if multiple else float(text.replace(",", ""))


def read_line(line: str) -> Row:
    """The numbers of a line and where they stand; no values where it says none."""
    clean = cleaned(line)
    return clean.of_rank(said(clean.text).row(clean.time))


def said(text: str) -> Said:
    """What a `cleaned` line says."""
    bar = _BAR.match(text)
    if bar is None:
        return _said(text)
    about, behind = _said(bar["about"].strip(" :")), _said(f"{bar['said'].partition(',')[2]}, {bar['behind']}")
    epoch = behind.epoch or about.epoch
    if _EVALUATES.match(bar["about"]):  # it counts the batches of the evaluation
        return Said({f"val {name}": text for name, text in behind.numbers.items()}, "", epoch)
    told = behind.step or any(kind_and_rank(name) == ("step", 0) for name in behind.numbers)
    return Said(behind.numbers, behind.step if told or not behind.numbers else bar["step"], epoch)


def tells_results(names: Iterable[str]) -> bool:
    """Whether any of the names is of what a training is watched for."""
    words = (word for name in names for split in (_WORDS, _SEPARATORS) for word in split.split(name.lower()))
    return any(word[cut:] in RESULTS for word in words for cut in range(LONGEST_MARK + 1))


def _said(text: str) -> Said:
    text = re.sub(r" *([:=])\s+", r"\1 ", _LEVEL.sub("", text))
    text = re.sub(r"(?<=\d)/(?=[A-Za-z_]+=)", ", ", text)  # `epoch=0/micro_step=50`
    step, epoch, text = _bracketed_place(text)
    text = re.sub(r"([:=]?)\s*\[\s*([\d./]+)\s*\]", lambda found: f"{found[1] or ' '}{found[2]}", text)
    text = re.sub(r"(?<=[A-Za-z])\s+(?=\d)", " ", re.sub(r"\s*/ *(?=\d)", "/", text)).strip()
    named: dict[str, str] = {}
    spaced: dict[str, str] = {}
    part = ""
    if not (step or epoch) and (within := _PLACE_WITHIN.match(text)):
        text = text[within.end() :]
    for field in _APART.split(text):
        while place := _PLACE.match(field):
            at = place["number"]
            step, epoch = (step, at) if place["what"].lower() == "epoch" else (at, epoch)
            field = field[place.end() :]
        if not named and not spaced and (found := _PART.match(field)):
            part, field = found[1], field[found.end() :]
        named |= _numbers(_SAID, field)
        if not _SPACED.sub("", field).strip():
            spaced |= _numbers(_SPACED, field)
    return Said(_of_part(part, named | spaced if tells_results([*named, *spaced]) else named), step, epoch)


def _bracketed_place(text: str) -> tuple[str, str, str]:
    """Step and epoch that stand in brackets or before a bar, and what is said behind them."""
    if found := _EPOCH_AND_STEP.search(text):
        part, *numbers = found.groups()
        epoch, step = (number for number in numbers if number is not None)
        return "" if _EVALUATES.match(part or "") else step, epoch, text[found.end() :]
    if found := _STEP_ALONE.search(text):
        return next(filter(None, found.groups())), "", text[found.end() :]
    return "", "", text


def _numbers(pattern: re.Pattern[str], field: str) -> dict[str, str]:
    return {
        one["name"]: one["value"] + (unit if (unit := one["unit"].strip()) in MULTIPLES else "")
        for one in pattern.finditer(field)
        if one["name"].lower() not in LEFT_OUT
    }


def _of_part(part: str, numbers: dict[str, str]) -> dict[str, str]:
    """`val Loss` of a line that begins with `val`; the first alone where others of its names say what they are of."""
    of_all = all((VALIDATION | TRAINING).isdisjoint(_WORDS.split(name.lower())) for name in numbers)
    return {
        f"{part} {name}" if part and (of_all or place == 0) else name: text
        for place, (name, text) in enumerate(numbers.items())
    }
