"""What a line that a program prints for people says: numbers under names, and the step or epoch they stand at.

Known are the habits of this field: `iter 10: loss 3.2, time 23ms` (nanoGPT), `step:  1  loss:  8.1  tps: 1,234`
(torchtitan), `iteration 100/ 1000 | lm loss: 7.1E+00 |` (Megatron), `Epoch: [0]  [ 10/1251]  loss: 6.9 (7.0)`
(torchvision), `Epoch [1/10], Step [5/50], Loss: 0.5`, `{'loss': 0.5, 'epoch': 0.1}` (transformers), `[100] acc=0.1`
(CLU), bars of tqdm and Keras.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from cockpit.core.foreign.places import moment
from cockpit.core.foreign.rows import Row, row_of
from cockpit.core.text import ESCAPE
from engines.contract.metric_names import TRAINING, VALIDATION

RESULTS = frozenset(
    """acc accuracy auc bleu bpb bpc cer dice error f1 fid iou loss losses mae map mse perplexity ppl psnr return reward
    rmse rouge score ssim success wer""".split()
)
"""Words of the names of what a training is watched for: by them a line that tells no step is told from prose."""
LEFT_OUT = frozenset({"eta", "v_num"})
MULTIPLES = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9}

_NUMBER = (
    r"[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|nan|inf(?:inity)?)"
)
_UNIT = r"(?P<unit>\s?(?:%|[KMGT]i?B|[kKMB]|[munµ]?s|sec|seconds|min|m|h|W|°?C)?(?:/[A-Za-z]+)?|\s?[a-z]+/[a-z]+)"
_WORD = r"[A-Za-z_][\w./@+#-]*"
_ENDS = r"(?=[\s,;|)/(]|$)"
_SAID = re.compile(
    rf"(?<![\w:./@-])(?P<name>{_WORD}(?: [A-Za-z_(][\w./@+#()%-]*){{0,5}})[:=] ?(?P<value>{_NUMBER}){_UNIT}{_ENDS}",
    re.I,
)
_SPACED = re.compile(rf"(?P<name>{_WORD}(?: {_WORD})?) (?P<value>{_NUMBER}){_UNIT}{_ENDS}", re.IGNORECASE)
_APART = re.compile(r"\s*(?:[|;\[\]]|(?<!\d),|,(?!\d{3}(?!\d))|\s-(?=\s)|\s{2,})\s*")

_PLACE = re.compile(
    r"(?:(?:train(?:ing)?|learning|global|optimizer|at)[ _])?"
    r"(?P<what>epoch|step|iter(?:ation)?|it|batch|update|episode)"
    r"[ :=#]*(?P<number>\d[\d,]*(?:\.\d+)?)(?: ?/\d+| of \d+)?(?=[\s:,)]|$)[\s:,)]*",
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
    r"(?:^|\] )\[(\d+)\]\s+(?=[A-Za-z])"  # CLU, XGBoost
    r"|\biter\(\w+\)\s*\[\s*(\d+)/\d+\]"  # MMEngine
    r"|^(\d+)/(?:\d+|Unknown)\s+(?:\[[=>.]*\]|━+|-(?= ))",  # Keras
    re.IGNORECASE,
)
_BAR = re.compile(r"^(?P<about>.*?)\s*\d+%\|[^|]*\|\s*(?P<step>\d+)/(?:\d+|\?)\s*\[(?P<said>[^\]]*)\]?(?P<behind>.*)$")
_WHEN = re.compile(r"^[\[(]?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?|\d\d:\d\d:\d\d(?:[.,]\d+)?)[\])]?[\s|-]*")
_LEVEL = re.compile(r"^.*?\b(?:INFO|DEBUG|WARNING)\b(?::\w+:)?[\s:\]|-]*")
_PART = re.compile(
    r"(train(?:ing)?|val(?:id(?:at\w+)?)?|test(?:ing)?|eval(?:uat\w+)?)(?: set| phase)?[: ]+(?=[A-Z])", re.IGNORECASE
)
_EVALUATES = re.compile(r"(?:val|test|eval|sanity)", re.IGNORECASE)
_WORDS = re.compile(r"[^A-Za-z]+")
_QUOTES = str.maketrans("", "", "'\"{}\b")


def read_line(line: str) -> Row:
    """The numbers of a line and where they stand, without what colours it; no values where it says none."""
    text = ESCAPE.sub("", line).translate(_QUOTES).strip(" \t\r*#>")
    bar = _BAR.match(text)
    if bar is None:
        return _read(text)
    about, row = _read(bar["about"].strip(" :")), _read(f"{bar['said'].partition(',')[2]}, {bar['behind']}")
    epoch = about.epoch if math.isnan(row.epoch) else row.epoch
    if _EVALUATES.match(bar["about"]):  # it counts the batches of the evaluation
        return Row({f"val {name}": value for name, value in row.values.items()}, epoch=epoch)
    step = float(bar["step"]) if math.isnan(row.step) else row.step
    return row._replace(step=step if row.values else math.nan, epoch=epoch)


def tells_results(names: Iterable[str]) -> bool:
    """Whether any of the names is of what a training is watched for."""
    return any(word in RESULTS for name in names for word in _WORDS.split(name.lower()))


def _read(text: str) -> Row:
    time = math.nan
    if when := _WHEN.match(text):
        time, text = moment(when[1]) or math.nan, text[when.end() :]
    text = re.sub(r" *([:=])\s+", r"\1 ", _LEVEL.sub("", text))
    step, epoch, text = _bracketed_place(text)
    text = re.sub(r"([:=]?)\s*\[\s*([\d./]+)\s*\]", lambda found: f"{found[1] or ' '}{found[2]}", text)
    text = re.sub(r"(?<=[A-Za-z])\s+(?=\d)", " ", re.sub(r"\s*/ *(?=\d)", "/", text)).strip()
    said: dict[str, float] = {}
    spaced: dict[str, float] = {}
    part = ""
    for field in _APART.split(text):
        while place := _PLACE.match(field):
            number = float(place["number"].replace(",", ""))
            step, epoch = (step, number) if place["what"].lower() == "epoch" else (number, epoch)
            field = field[place.end() :]
        if not said and not spaced and (found := _PART.match(field)):
            part, field = found[1], field[found.end() :]
        said |= _numbers(_SAID, field)
        if not _SPACED.sub("", field).strip():
            spaced |= _numbers(_SPACED, field)
    values = said | spaced if tells_results([*said, *spaced]) else said
    row = row_of(_of_part(part, values))
    return row._replace(
        step=row.step if math.isnan(step) else step, epoch=row.epoch if math.isnan(epoch) else epoch, time=time
    )


def _bracketed_place(text: str) -> tuple[float, float, str]:
    """Step and epoch that stand in brackets or before a bar, and what is said behind them."""
    if found := _EPOCH_AND_STEP.search(text):
        part, *numbers = found.groups()
        epoch, step = (float(number) for number in numbers if number is not None)
        return math.nan if _EVALUATES.match(part or "") else step, epoch, text[found.end() :]
    if found := _STEP_ALONE.search(text):
        return float(next(filter(None, found.groups()))), math.nan, text[found.end() :]
    return math.nan, math.nan, text


def _numbers(pattern: re.Pattern[str], field: str) -> dict[str, float]:
    return {
        one["name"]: float(one["value"].replace(",", "")) * MULTIPLES.get(one["unit"].strip(), 1.0)
        for one in pattern.finditer(field)
        if one["name"].lower() not in LEFT_OUT
    }


def _of_part(part: str, values: dict[str, float]) -> dict[str, float]:
    """`val Loss` of a line that begins with `val`; the first alone where others of its names say what they are of."""
    of_all = all((VALIDATION | TRAINING).isdisjoint(_WORDS.split(name.lower())) for name in values)
    return {
        f"{part} {name}" if part and (of_all or place == 0) else name: value
        for place, (name, value) in enumerate(values.items())
    }
