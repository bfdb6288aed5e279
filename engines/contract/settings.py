"""The config sections every project shares, as strict pydantic models. A project subclasses `RunConfig`.

Import this only where a config is read: pydantic costs start-up time.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from engines.contract import limits, on_finish
from engines.contract.on_finish import IDLE_MINUTES

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
_PLACE = re.compile(r"[\w.-]{1,253}:\d{1,5}", re.ASCII)
_DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d{1,3})?", re.ASCII)


class Section(BaseModel):
    """A config section: unknown keys are errors, values are not silently converted, defaults are checked too."""

    model_config = ConfigDict(extra="forbid", strict=True, validate_default=True, use_attribute_docstrings=True)


class Data(Section):
    path: str
    """Folder or file the data is read from; relative paths start at the current directory."""
    stage: str | None = None
    """Folder on a local disk that the data is copied to before a training reads it, as from a network volume; what is
    there already is not copied again."""


class Stage(Section):
    """One stage of a run (a curriculum step, a training phase)."""

    name: str
    """Shown in the table and the events."""
    epochs: Count | None = None
    """Length of this stage; the last stage takes the remaining training.epochs if absent."""
    patience: Count | None = None
    """Epochs without a better score before this stage ends; training.patience if absent."""
    heads: Annotated[list[str], Field(min_length=1)] | None = None
    """Loss terms that are on, or parts of one (`action.sprint`); all if absent."""
    frozen: list[str] = []
    """Parameter-name patterns (`encoder.*`) that get no gradient in this stage."""
    data: str | None = None
    """Data filter, handed to the project's sampler."""
    begin: Literal["last", "best"] = "last"
    """Weights and moments it starts with: the last of the previous stage, or those of that stage's best epoch."""
    batch_size: Count | None = None
    """Samples per optimizer step; training.batch_size if absent."""
    steps_per_epoch: Count | None = None
    """Batches per epoch; training.steps_per_epoch if absent."""
    grad_clip: Positive | None = None
    """Largest gradient norm; training.grad_clip if absent."""
    lr: Positive | None = None
    """Peak learning rate of this stage; training.lr if absent."""
    restart_schedule: bool = True
    """Restart warm-up and cosine, and fit them to this stage."""
    restart_optimizer: bool = False
    """Forget the optimizer's moments when the stage begins."""
    restart_best: bool = True
    """Restart best score and patience (a new stage may optimise something else)."""


class Training(Section):
    epochs: Count = 150
    """Epochs to train, over all stages."""
    batch_size: Count = 64
    """Samples per optimizer step, over all ranks and micro-batches."""
    micro_batches: Count | Literal["auto"] = 1
    """Parts each batch is split into, to save memory; the gradient is still that of the whole batch. auto starts with
    one and takes more when the device is out of memory."""
    lr: Positive = 5e-4
    """Peak learning rate."""
    min_lr: NonNegative = 1e-6
    """Learning rate at the end of the cosine."""
    weight_decay: NonNegative = 1e-4
    """AdamW weight decay; norms, biases and embeddings get none."""
    warmup_epochs: NonNegative = 5.0
    """Epochs of linear warm-up; the first step's rate is above zero."""
    evaluate_every: Count = 1
    """Epochs between evaluations; epochs that may end the run or a stage are evaluated too."""
    patience: Count = 25
    """Epochs without a better score before the run stops early."""
    grad_clip: Positive = 1.0
    """Largest gradient norm."""
    amp: Literal["auto", "off", "tf32", "bf16", "fp16"] = "auto"
    """Mixed precision: auto is bf16 where the GPU supports it, fp16 with a scaler on older GPUs, off on CPU and MPS.
    tf32 keeps fp32 and multiplies in TF32: often quickest for a small model. `check` times them."""
    compile: bool = False
    """Use torch.compile on the model: its results equal the uncompiled ones to rounding, a resume's too."""
    graph: bool = False
    """Replay the whole step as one CUDA graph, which launches its kernels at once; the log says why where it cannot."""
    seed: int = 42
    """Seeds everything: initial weights, order, augmentation, dropout."""
    steps_per_epoch: Count | None = None
    """Batches per epoch; all of the training data if absent."""
    checkpoint_minutes: Positive = 5.0
    """How often last.pt is also saved within a long epoch."""
    log_every: Count = 10
    """Steps between transfers of logged values from the device; every step is logged."""
    max_bad_steps: Count = 50
    """Non-finite steps in a row that end the run; the last good checkpoint is kept."""
    stages: list[Stage] = []
    """Stages in order; if empty, one stage with everything on."""

    @model_validator(mode="after")
    def _consistent(self) -> Training:
        for size in (self.batch_size, *(stage.batch_size for stage in self.stages if stage.batch_size)):
            if self.micro_batches != "auto" and size % self.micro_batches:
                raise ValueError(f"batch_size {size} must be a multiple of micro_batches {self.micro_batches}")
        names = [stage.name for stage in self.stages]
        if len(set(names)) < len(names):
            raise ValueError("every stage needs a different name")
        if any(stage.epochs is None for stage in self.stages[:-1]):
            raise ValueError("every stage but the last needs its own epochs")
        if self.stages and self.stages[0].begin == "best":
            raise ValueError("the first stage cannot start with the best of a previous one")
        return self


class Launch(Section):
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps: auto takes the first GPU, or the CPU if there is none."""
    devices: Count | Literal["auto"] = 1
    """Ranks on each machine, one for each GPU, or on the CPU so many processes; auto takes every visible GPU."""
    nodes: Count = 1
    """Machines that train together, each with as many ranks."""
    rendezvous: str = ""
    """`host:port` of the first machine, at which the others meet it; needed with several nodes."""
    strategy: Literal["ddp", "fsdp2"] = "ddp"
    """ddp: every rank holds the whole model, and its rows of each batch. fsdp2: the ranks divide parameters, gradients
    and optimizer among them, for a model that does not fit one GPU with its optimizer; more in docs/scale.md."""
    restarts: Annotated[int, Field(ge=0)] = 0
    """How many times a failed run is started again from its last checkpoint."""
    queue: bool = False
    """Wait until no other run is on the device; waiting runs start one after another."""
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Part of the device that the run takes: queued runs whose shares fit run beside each other. Of a GPU's memory it
    gets no more than that."""
    threads: Count | None = None
    """CPU threads of the engine, over its ranks, recorded because results depend on it; every usable core if absent."""

    @field_validator("device")
    @classmethod
    def _is_known(cls, device: str) -> str:
        """Told before a run waits in a queue for it."""
        if not _DEVICE.fullmatch(device):
            raise ValueError(f"expected auto, cpu, cuda, cuda:1 or mps, got {device!r}")
        return device

    @field_validator("rendezvous")
    @classmethod
    def _is_a_place(cls, rendezvous: str) -> str:
        if rendezvous and not _PLACE.fullmatch(rendezvous):
            raise ValueError(f"expected host:port, as in node-0:29400, got {rendezvous!r}")
        return rendezvous

    @model_validator(mode="after")
    def _fits(self) -> Launch:
        if self.nodes > 1 and not self.rendezvous:
            raise ValueError("several nodes need a rendezvous: host:port of the first one")
        if self.several and (self.device == "mps" or ":" in self.device):
            raise ValueError(f"device {self.device} is one device; use auto, cuda or cpu with several ranks")
        return self

    @property
    def several(self) -> bool:
        """Whether `torchrun` starts the engine."""
        return self.devices != 1 or self.nodes > 1


class Cost(Section):
    usd_per_hour: NonNegative = 0.0
    """Price of the machine, from which costs are computed."""
    budget_usd: Positive | None = None
    """The run is saved and stopped when it has cost this much over all attempts; killed ten minutes later."""
    on_finish: str | list[str] | None = None
    """A command, as text for the shell or a list of words, such as one that stops the machine. It runs when the run has
    finished, stopped early, spent its budget, or failed after its first step or a wait in the queue, and no other run
    is live or waiting on this machine; never after a stop. `stop-pod` and `remove-pod` are what runpodctl does with
    this pod. More in docs/queue.md."""
    on_error: str | list[str] | None = None
    """The command for a run that failed, in place of on_finish."""
    on_stall: str | list[str] | None = None
    """The command for a run that hangs: it is saved and stopped, killed ten minutes later, then the command runs."""
    on_idle: str | list[str] | None = None
    """The command for a machine on which, after the run has ended in any way, nothing ran and nobody typed for
    idle_minutes."""
    idle_minutes: Positive = IDLE_MINUTES
    """Minutes without a run and without a key pressed before on_idle runs."""
    copy_first: str | list[str] | None = None
    """A command that must succeed before any of these runs, such as one that copies the run away; six hours at most."""

    @field_validator("on_finish", "on_error", "on_stall", "on_idle", "copy_first", mode="before")
    @classmethod
    def _is_a_command(cls, value: Any) -> Any:
        if value is not None and (fault := on_finish.fault(value)):
            raise ValueError(fault)
        return value


class Output(Section):
    dir: str | None = None
    """The run directory; a new one under the runs folder if absent."""
    keep_epochs: Annotated[int, Field(ge=0)] = 0
    """Keep an epoch_NNN.pt every so many epochs; 0 keeps only best.pt and last.pt."""
    keep_best: Annotated[int, Field(ge=0)] = 0
    """Keep an epoch_NNN.pt of the so many best epochs of each stage; one that is no longer among them is removed."""
    writers: list[Literal["tensorboard", "wandb"]] = []
    """Programs the run is mirrored to; one that is missing or fails warns once and never affects the training."""


class RunConfig(Section):
    """A whole config file. Projects narrow `data`, `model`, `loss_weights` and `thresholds`."""

    project: str
    """Name of the installed project."""
    data: Data
    model: Section
    loss_weights: Section
    """One weight per head."""
    training: Training = Training()
    thresholds: Section = Section()
    launch: Launch = Launch()
    cost: Cost = Cost()
    output: Output = Output()

    @model_validator(mode="after")
    def _strategy_fits(self) -> RunConfig:
        for name in ("compile", "graph"):
            if self.launch.strategy == "fsdp2" and getattr(self.training, name):
                raise ValueError(f"launch.strategy fsdp2 cannot be used with training.{name}; turn it off, or use ddp")
        return self

    @field_validator("loss_weights")
    @classmethod
    def _can_be_weighed(cls, weights: Section) -> Section:
        """As a live edit is checked, so that what a config says can be said live too."""
        if fault := limits.weights_fault(weights.model_dump()):
            raise ValueError(fault)
        return weights
