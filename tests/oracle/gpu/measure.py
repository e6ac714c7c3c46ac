"""measure.py PLAN.jsonl OUT [SECONDS]: runs the plan's jobs on one card, side by side as far as its memory goes.

A line of the plan: {"module": ..., "id": ..., "expect_bytes": ..., "alone": false, ...job}.  Jobs start in the plan's order (a smaller one may go ahead
of one that has no room yet).  Results: OUT/results.jsonl.gz, OUT/events.jsonl.gz, OUT/errors.txt."""
import gzip
import json
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
START = time.time()


def main():
    plan_path, out, limit = sys.argv[1], sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else 500
    most = int(os.environ.get("MOST", "12"))
    plan = [json.loads(line) for line in open(plan_path) if line.strip()]
    raw = os.path.join(out if os.environ.get("TIDEMARK_SMOKE") else "/tmp", "raw")
    os.makedirs(raw, exist_ok=True)
    plan = [j for j in plan if not answered(os.path.join(raw, j["id"] + ".json"))]
    total = card_bytes()
    zygotes, ready, done = {}, threading.Event(), []
    lock = threading.Condition()
    running = {}
    left = {}
    for j in plan:
        left[j["module"]] = left.get(j["module"], 0) + 1

    def listen(name, p):
        for line in p.stdout:
            word, _, rest = line.strip().partition(" ")
            with lock:
                if word == "ready":
                    zygotes[name] = p
                    print(f"{time.time() - START:6.1f} ready {name}", flush=True)
                elif word == "done":
                    running.pop((name, rest), None)
                    done.append((name, rest))
                lock.notify_all()
        with lock:
            left[name] = 0
            gone.add(name)
            lock.notify_all()
    gone = set()
    for name in sorted(left):
        err = open(os.path.join(raw, f"zygote-{name}.err"), "w")
        p = subprocess.Popen([sys.executable, "-W", "ignore", os.path.join(HERE, "zygote.py"), name, raw], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=err, text=True, cwd=HERE)
        threading.Thread(target=listen, args=(name, p), daemon=True).start()
    todo = list(plan)
    while (todo or running) and time.time() - START < limit:
        with lock:
            used = sum(running.values())
            todo = [j for j in todo if j["module"] not in gone]           # an import that failed
            choice = None
            alone_running = any(k[1].startswith("alone-") for k in running)
            if not alone_running:
                for i, j in enumerate(todo[:60]):
                    if j["module"] not in zygotes:
                        continue
                    if j["id"].startswith("alone-"):
                        if not running and i == 0:
                            choice = i
                        if i == 0:
                            break
                        continue
                    need = need_of(j)
                    if len(running) < most and (used + need < total or not running):
                        choice = i
                        break
            if choice is None:
                if todo or running:
                    lock.wait(1.0)
                continue
            j = todo.pop(choice)
            running[(j["module"], j["id"])] = need_of(j)
            zygotes[j["module"]].stdin.write(json.dumps(j) + "\n")
            zygotes[j["module"]].stdin.flush()
    print(f"{time.time() - START:6.1f} done {len(done)}, running {list(running)}, left {len(todo)}", flush=True)
    collect(raw, out)


def answered(path):
    return os.path.exists(path) and "error" not in json.load(open(path))


def need_of(j):
    return int(j.get("expect_bytes", 4 << 30) * 1.12) + (1200 << 20)


def card_bytes():
    try:
        import pynvml
        pynvml.nvmlInit()
        return pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).free - (2 << 30)
    except Exception:                                  # noqa: BLE001 - no card: a smoke run
        return 12 << 30


def collect(raw, out):
    errors = {}
    with gzip.open(os.path.join(out, "results.jsonl.gz"), "wt") as results, gzip.open(os.path.join(out, "events.jsonl.gz"), "wt") as events:
        for name in sorted(os.listdir(raw)):
            if name.endswith(".json"):
                r = json.load(open(os.path.join(raw, name)))
                if "events" in r:
                    events.write(json.dumps({"id": r["job"]["id"], "events": r.pop("events")}) + "\n")
                if "error" in r:
                    errors[name] = r["error"]
                results.write(json.dumps(r) + "\n")
            elif name.endswith(".log") and not os.path.exists(os.path.join(raw, name[:-4] + ".json")):
                errors[name] = "no answer: " + open(os.path.join(raw, name), errors="replace").read()[-400:]
    with open(os.path.join(out, "errors.txt"), "w") as f:
        for name, text in errors.items():
            f.write(f"{name}: {text}\n")
        for name in os.listdir(raw):
            if name.startswith("zygote-"):
                f.write(f"--- {name}\n" + open(os.path.join(raw, name), errors="replace").read()[-1500:] + "\n")
    n = sum(1 for x in os.listdir(raw) if x.endswith(".json"))
    print(f"{n} answers, {len(errors)} errors", flush=True)
    for name, text in list(errors.items())[:25]:
        print("  ", name[:60], text.replace("\n", " ")[:150])


if __name__ == "__main__":
    main()
    os._exit(0)
