# SPDX-License-Identifier: MIT
"""Scenes in which waves and queues wait, and what `why` says of them."""
import pathlib
import subprocess
import tempfile
from typing import Any, Dict, List, Optional, Sequence

from harness import Scene

# The words of s_barrier, and of s_nop 0, for each generation; the file is one of gfx90a, whose code nobody executes.
BARRIER = {"gfx90a": 0xBF8A0000, "gfx942": 0xBF8A0000, "gfx1030": 0xBF8A0000, "gfx1100": 0xBFBD0000}
NOP = 0xBF800000

SOURCE = """
.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"
.text
.globl gemm
.p2align 8
.type gemm,@function
gemm:
{words}
.size gemm, .-gemm
.rodata
.p2align 6
.amdhsa_kernel gemm
 .amdhsa_next_free_vgpr 8
 .amdhsa_next_free_sgpr 16
 .amdhsa_accum_offset 8
.end_amdhsa_kernel
"""


def code_object(directory: pathlib.Path, words: Sequence[int]) -> pathlib.Path:
    """A code object whose only kernel, gemm, is these words."""
    text = "\n".join(f" .long 0x{word:08x}" for word in words)
    (directory / "gemm.s").write_text(SOURCE.format(words=text))
    subprocess.run(["clang", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-nogpulib", "-x", "assembler", "-o",
                    directory / "gemm.co", directory / "gemm.s"], check=True)
    return directory / "gemm.co"


class WaitScene(Scene):
    """A program on one GPU whose kernel has its barrier at gemm+0x40, and much else that is no barrier."""

    def __init__(self, gpu: str, script: str, words: Optional[Sequence[int]] = None) -> None:
        super().__init__(app=None, gpus=gpu)
        self.gpu, self.script, self.words = gpu, script, words

    def __enter__(self) -> "WaitScene":
        super().__enter__()
        self.files = tempfile.TemporaryDirectory()
        words = list(self.words or [NOP] * 16 + [BARRIER.get(self.gpu, NOP)] + [NOP] * 47)
        path = code_object(pathlib.Path(self.files.name), words)
        pathlib.Path(self.files.name).chmod(0o755)
        self.app = self.start_app(self.script.replace("CODE", str(path)))
        return self

    def __exit__(self, *args: Any) -> Optional[bool]:
        ret = super().__exit__(*args)
        self.files.cleanup()
        return ret

    def attach(self, *args: Any, **params: Any) -> str:
        self.session = super().attach(*args, **params)
        return self.session

    def why(self, **params: Any) -> Dict[str, Any]:
        result: Dict[str, Any] = self.rpc.call("why.get", session=self.session, **params)
        return result

    def culprits(self, **params: Any) -> List[Dict[str, Any]]:
        return [c for c in self.why(**params)["causes"] if c["culprit"]]
