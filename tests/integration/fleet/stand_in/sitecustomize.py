"""Put on a device's PYTHONPATH by the tests: measures nothing, so that dispatching is tested without minutes of measuring.

Everything else on the device is real: sshd, the agent, its locks, its files. While $STAND_IN/hold is there, the "suite" goes
on; $STAND_IN/fail makes it raise.
"""

import os
import sys
import types


def _run_suite(request, listen=lambda progress: None, fetching=None, run_id=None):
    import time
    import uuid
    from pathlib import Path
    from types import SimpleNamespace

    from harness.canonical import sha256_hex
    from harness.documents import Bundle, write_run
    from harness.errors import ModelError
    from harness.records import Case, Device, Environment, Measurement, Run, SampleBlob, Source, SuiteRef, Trial

    folder = Path(os.environ["STAND_IN"])
    for done in range(1, 3):
        listen(SimpleNamespace(done=done, total=4, text=f"case {done}"))
    while (folder / "hold").exists():
        time.sleep(0.02)
    if (folder / "fail").exists():
        raise ModelError("The stand-in was told to fail.")
    import struct
    import zlib

    blob = zlib.compress(struct.pack("<2q", 1_000_000, 2_000_000))
    named = SampleBlob("latency_ns", sha256_hex(blob), 2, len(blob))
    case = Case("basic-pitch", None, None, "fp32", "fp32", "onnxruntime", "cpu", None, "single_stream")
    trial = Trial(str(uuid.uuid4()), "timing", "failed", reason="a stand-in", samples=(named,))
    device = os.environ["WEIGHBRIDGE_DEVICE"]
    run = Run(
        run_id=run_id,
        status="complete",
        device=Device(device, str(uuid.uuid5(uuid.NAMESPACE_DNS, device)), "A test machine"),
        environment=Environment({"cpu": "a"}, {"os": "b"}),
        suite=SuiteRef("quick", "1", "0" * 64),
        trigger=request.trigger,
        started_at="2026-01-02T03:04:05Z",
        finished_at="2026-01-02T03:05:05Z",
        source=Source("measured", "weighbridge"),
        measurements=(Measurement(str(uuid.uuid4()), case, case.key, "failed", reason="a stand-in", trials=(trial,)),),
    )
    return Bundle(write_run(run), {named.sha256: blob})


if "STAND_IN" in os.environ:
    module = types.ModuleType("agents.device.run_suite")

    class RunRequest:
        def __init__(self, suite, selection, trigger="manual", offline=False):
            self.suite, self.selection, self.trigger, self.offline = suite, selection, trigger, offline

    module.RunRequest = RunRequest
    module.run_suite = _run_suite
    module.mark_stored = lambda run_id, finished: None
    sys.modules["agents.device.run_suite"] = module
