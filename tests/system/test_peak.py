from __future__ import annotations

import pytest
import torch

from bertcli.system.memory import peak_memory


def test_a_process_has_held_at_least_what_it_holds_and_remembers() -> None:
    cpu, before = torch.device("cpu"), peak_memory(torch.device("cpu"))
    held = torch.ones(before + (64 << 20), dtype=torch.uint8)
    after = peak_memory(cpu)
    assert after >= len(held)
    del held
    assert peak_memory(cpu) >= after


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_remembers_what_torch_took() -> None:
    cuda = torch.device("cuda")
    held = torch.empty(1 << 28, dtype=torch.uint8, device=cuda)
    assert peak_memory(cuda) >= len(held)
