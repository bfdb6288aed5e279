"""Takes off a line what is not the program's: colours, quotes, and what launchers and loggers put before it."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from cockpit.core.foreign.places import moment
from cockpit.core.foreign.rows import Row
from cockpit.core.text import ESCAPE

_PLACE_NEXT = r"(?=(?:global[ _])?(?:epoch|step|iter(?:ation)?|update|episode)[ :=#]+\d)"
_RANKED = re.compile(
    r"(?:\[(?:rank|default|local_rank|worker|trainer)[ _:]{0,2}(?P<bracketed>\d+)\]:?\s*"  # torchrun, Lightning
    r"|rank[ _]?(?P<named>\d+): *"
    r"|\[\d+,(?:mpirank:)?(?P<mpi>\d+)(?:,[\w-]+)?\]<std(?:out|err)>: *"  # mpirun, SageMaker
    rf"|(?P<task>\d+): {_PLACE_NEXT})",  # srun -l
    re.IGNORECASE,
)
_LAUNCHER = re.compile(
    r"\(\w+(?:\([^)]*\))? pid=\d+(?:, ip=[\d.]+)?\)\s*"  # Ray
    r"|\[(?:pod|container)/[\w./-]+\] *"  # kubectl logs --prefix
    r"|std(?:out|err) [FP] "  # the files of a Kubernetes node, behind their stamp
    r"|[\w.-]+-\d+ +\| "  # docker compose
    rf"|[\w.-]{{1,99}}-\w{{1,99}}(?: [\w.-]{{1,99}})? {_PLACE_NEXT}"  # stern: pod and container
    r"|(?:<\d+>)?[A-Z][a-z]{2} [ \d]\d [\d:]{8} \S+ [\w./@-]+(?:\[\d+\])?: "  # journald, syslog
    r"|[\w.-]+ [\w./@-]+\[\d+\]: "  # journald -o short-iso, behind its stamp
    r"|[IWEF](?:\d{4}|\d{8}) [\d:.]+\s+\d+ [\w.-]+:\d+\] *"  # glog
    r"|\[[^\[\]=]*\d\d:\d\d:\d\d[^\[\]=]*\]:? *"  # NeMo, Detectron2: a stamp and a module in brackets
    r"|\[(?:INFO|DEBUG|WARNING)\] *"
    r"|\[[\w./-]+\.\w+:\d+(?::\w+)?\] *"  # DeepSpeed: a file and a line
)
_STAMP = re.compile(
    r"[\[(]?(?P<when>(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)"
    r"(?: (?:UTC|GMT|[ECMP][SD]T)\b)?[\])]?(?::(?=\s))?[\s|-]*"
)
_NUMBER = r"[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|nan|inf)"
_WRAPPED = re.compile(  # a number as Python shows one of an array library
    r"\b(?:(?:np|numpy|jnp|jax|torch|tf|mx)\.)?"
    r"(?:u?int\d*|b?float\d*|tensor|Tensor|Array|array|DeviceArray|Decimal)"
    rf"\(\s*(?:({_NUMBER})|\[\s*({_NUMBER})\s*\])\s*(?:,[^()]*(?:\([^()]*\)[^()]*)*)?\)"
    r"|<tf\.(?:Tensor|Variable)[^<>]* numpy=([^\s<>\[\]]+)>"
)
_ARRAY = re.compile(
    r"(?<![\w./-])[./-]*(?P<name>\w[\w./-]*)"
    r"[\"']?\s*[:=]\s*(?P<value>(?:\w+\.)?(?:tensor|Tensor|Array|array|DeviceArray)\(.*?\))"
)
_NET_OUTPUT = re.compile(r"^(Train|Test) net output #\d+: ")  # Caffe
_TO_MICROSECONDS = re.compile(r"([.,]\d{6})\d+")
_BAR_DRAWN = re.compile(r"%\|[^|]*\|")
_QUOTES = str.maketrans("", "", "'\"{}\b")


class Cleaned(NamedTuple):
    """A line without colours, quotes, and what launchers and loggers put before it."""

    text: str
    time: float = math.nan
    """Of its log, as Unix seconds."""
    rank: str = ""
    """`rank 3`: the process of several that printed it, but for the first one."""

    def of_rank(self, row: Row) -> Row:
        """The row that the text says, of its process."""
        if not self.rank:
            return row
        return row._replace(
            values={f"{name} [{self.rank}]": value for name, value in row.values.items()}, group=self.rank
        )


def cleaned(line: str) -> Cleaned:
    """A line as it was printed, apart from its time and its rank."""
    text = ESCAPE.sub("", line) if "\x1b" in line else line
    text = text.translate(_QUOTES).lstrip(" \t\r*#=>").rstrip(" \t\r*#")
    time, rank = math.nan, ""
    while text:
        if stamp := _STAMP.match(text):
            time, end = moment(_TO_MICROSECONDS.sub(r"\1", stamp["when"])) or time, stamp.end()
        elif found := _RANKED.match(text):
            number = int(next(filter(None, found.groups())))
            rank, end = f"rank {number}" if number else rank, found.end()
        elif launcher := _LAUNCHER.match(text):
            end = launcher.end()
        else:
            break
        text = text[end:]
    if "(" in text or "<tf." in text:
        text = _WRAPPED.sub(lambda found: next(filter(None, found.groups())), text)
    text = _NET_OUTPUT.sub(r"\1: ", text)
    return Cleaned(_BAR_DRAWN.sub("%||", text), time, rank)


def array_in(line: str) -> tuple[str, str] | None:
    """Name and value of the first array that a line prints: of several numbers, and of none that a chart shows."""
    for found in _ARRAY.finditer(line) if "(" in line else ():
        if not _WRAPPED.fullmatch(found["value"]):
            return found["name"], found["value"]
    return None
