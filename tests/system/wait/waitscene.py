# SPDX-License-Identifier: MIT
"""Scenes in which waves and queues wait, and what `why` says of them."""
import json
import pathlib
import subprocess
import tempfile
import time
from typing import Any, Dict, List, Optional, Sequence

from harness import CudaScene, Scene

# The words of s_barrier, and of s_nop 0, for each generation; the file is one of gfx90a, whose code nobody executes.
BARRIER = {"gfx90a": 0xBF8A0000, "gfx942": 0xBF8A0000, "gfx1030": 0xBF8A0000, "gfx1100": 0xBFBD0000, "gfx1201": 0xBF94FFFF,
           "gfx1250": 0xBF94FFFF}
NOP = 0xBF800000
# s_branch to gemm+0x80, at gemm+0x8c.
OLD, NEW = ["gfx90a", "gfx942", "gfx1030"], ["gfx1100", "gfx1201", "gfx1250"]
BACK = {**dict.fromkeys(OLD, 0xBF82FFFC), **dict.fromkeys(NEW, 0xBFA0FFFC)}
SLEEP = {**dict.fromkeys(OLD, 0xBF8E0001), **dict.fromkeys(NEW, 0xBF830001)}
# A loop that ends when the word at s[2:3] is what s4 says: load at v0 + s[2:3], wait, compare, branch back (clang 22, -O2).
POLL = {"gfx90a": [0xDC518000, 0x01020000, 0xBF8C0F70, 0x7D9A0204, 0xBF87FFFB],
        "gfx942": [0xDE518000, 0x01020000, 0xBF8C0F70, 0x7D9A0204, 0xBF87FFFB],
        "gfx1030": [0xDC319000, 0x01020000, 0xBF8C3F70, 0x7D8A0204, 0xBF87FFFB],
        "gfx1100": [0xDC524000, 0x01020000, 0xBF8903F7, 0x7C9A0204, 0xBFA4FFFB],
        **dict.fromkeys(["gfx1201", "gfx1250"], [0xEE050002, 0x000C0001, 0x00000000, 0xBFC00000, 0x7C9A0204, 0xBFA4FFFA])}
# What a wave has in its registers there; `flag` is a signal of the script.
POLLS = "s2=@flag s4=7 v0=0"
WIDTH = {"gfx90a": 64, "gfx942": 64, "gfx1030": 32, "gfx1100": 32, "gfx1201": 32, "gfx1250": 32}

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


def kernel(gpu: str, **words: int) -> List[int]:
    """Words of a kernel with its barrier at +0x40, and others at the places that are named: at_0x8c=WORD."""
    code = [NOP] * 16 + [BARRIER[gpu]] + [NOP] * 47
    for place, word in words.items():
        code[int(place[3:], 16) // 4] = word
    return code


def polling(gpu: str, **words: int) -> List[int]:
    """The same kernel, with a loop that polls at +0x80."""
    loop = {f"at_{0x80 + 4 * i:#x}": word for i, word in enumerate(POLL[gpu])}
    return kernel(gpu, **{**loop, **words})


def block(gpu: str, keys: str = "", groups: int = 3, waves: int = 4) -> str:
    """A script: workgroups of some waves, of which all but the last wait at gemm+0x40, and that one is elsewhere."""
    size = waves * WIDTH[gpu]
    return (f"runtime ttmp; queues 1; load CODE; dispatch 0 gemm {size * groups} {size}; "
            f"waves 0 barrier {waves * groups} gemm+0x40 group={waves} {keys}; spin")


class WaitScene(Scene):
    """A program on one GPU whose kernel has its barrier at gemm+0x40, and much else that is no barrier.

    It runs a script, in which CODE stands for the code object.
    """

    def __init__(self, gpu: str, script: str, words: Optional[Sequence[int]] = None) -> None:
        super().__init__(app=None, gpus=gpu)
        self.gpu, self.script, self.words = gpu, script, words

    def __enter__(self) -> "WaitScene":
        self.files = tempfile.TemporaryDirectory()
        super().__enter__()
        path = code_object(pathlib.Path(self.files.name), list(self.words or kernel(self.gpu)))
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


class CudaWaitScene(CudaScene):
    """A scene of a simulated NVIDIA device, of which two samples are taken."""

    def twice(self, between: Sequence[str] = ()) -> Dict[str, Any]:
        """What two samples say, and what changes between them."""
        session = self.attach()
        first = self.rpc.call("why.get", session=session)
        for command in between:
            self.control(command)
        time.sleep(1.05)
        second: Dict[str, Any] = self.rpc.call("why.get", session=session, since=first["sample"])
        print(json.dumps(second["causes"]))
        return second


def culprits(doc: Dict[str, Any]) -> List[Dict[str, Any]]:
    return [c for c in doc["causes"] if c["culprit"]]
