"""zygote.py MODULE RAWDIR: imports MODULE, prepares it, then forks a child for every job read from standard input.

MODULE has prepare() (imports, no CUDA) and run(job, probe) -> dict.  A child's answer lies in RAWDIR/<id>.json; "done ID" is printed for each."""
import json
import os
import sys
import time
import traceback
import threading

os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def child(module, job, raw):
    import signal
    t0 = time.time()
    out = {"job": job}
    log = os.open(os.path.join(raw, job["id"] + ".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)

    def late(*_):
        raise TimeoutError("too long")
    signal.signal(signal.SIGALRM, late)
    signal.alarm(int(job.get("timeout", 60)))
    try:
        for k, v in job.get("env", {}).items():
            os.environ[k] = v
        from probe import Probe
        probe = Probe()
        out.update(module.run(job, probe))
    except BaseException as e:                        # noqa: BLE001 - the scheduler goes on
        out["error"] = f"{type(e).__name__}: {str(e)[:600]}"
        out["traceback"] = traceback.format_exc()[-1500:]
    signal.alarm(0)
    out["wall_s"] = round(time.time() - t0, 2)
    with open(os.path.join(raw, job["id"] + ".json.part"), "w") as f:
        json.dump(out, f)
    os.rename(os.path.join(raw, job["id"] + ".json.part"), os.path.join(raw, job["id"] + ".json"))
    os._exit(0)


def main():
    name, raw = sys.argv[1:3]
    os.makedirs(raw, exist_ok=True)
    module = __import__(name)
    module.prepare()
    print("ready", flush=True)
    lock = threading.Lock()

    def reap(pid, id_):
        os.waitpid(pid, 0)
        with lock:
            print("done", id_, flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if not pid:
            child(module, job, raw)
        threading.Thread(target=reap, args=(pid, job["id"]), daemon=True).start()


if __name__ == "__main__":
    main()
