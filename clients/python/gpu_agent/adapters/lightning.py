# SPDX-License-Identifier: MIT
"""PyTorch Lightning: a callback that tells progress after each batch.

    trainer = Trainer(callbacks=[gpu_agent.adapters.lightning.callback(timeout=120)])
"""
from __future__ import annotations

import importlib
from typing import Any, Optional

from ..watchdog import Watchdog, start


def _framework() -> Any:
    try:
        return importlib.import_module("lightning.pytorch")
    except ImportError:
        return importlib.import_module("pytorch_lightning")


def callback(timeout: Optional[float] = None, **options: Any) -> Any:
    """A Callback; the options are those of gpu_agent.watchdog.start(), which is called when training or validation begins."""
    base: Any = _framework().Callback

    class GpuAgentWatchdog(base):  # type: ignore[misc]
        watchdog: Optional[Watchdog] = None

        def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
            if not self.watchdog:
                self.watchdog = start(timeout, **options)

        def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
            if self.watchdog:
                self.watchdog.stop()
                self.watchdog = None

        def _beat(self, *_: Any, **__: Any) -> None:
            if self.watchdog:
                self.watchdog.beat()

        on_train_batch_end = on_validation_batch_end = on_test_batch_end = on_predict_batch_end = _beat
        on_train_epoch_start = on_validation_epoch_start = on_save_checkpoint = _beat

    return GpuAgentWatchdog()
