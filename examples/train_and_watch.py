"""Train an agent on a chain of states with two replay methods, compare their errors, and film the better one.

Run it: python examples/train_and_watch.py
"""

from pathlib import Path

from backsweep.agent import read_records, run_config, train
from backsweep.agent.session.watch import film

errors = {}
for method in ("uer", "ter"):
    config = run_config("nchain-20", method=method, steps=1_500, evaluation_interval=100, evaluation_episodes=10)
    train(config, folder=f"runs/{method}", quiet=True)
    errors[method] = {record.step: record.value_error for record in read_records(f"runs/{method}", "evaluation")}

print("step    mean |Q - Q*|")
for step in errors["uer"]:
    if step > 1_000:  # before that the agent only looks around
        print(f"{step:5}   uniform {errors['uer'][step]:.3f}   topological {errors['ter'][step]:.3f}")

total, steps = film(Path("runs/ter"), Path("episode.gif"))
print(f"episode.gif: {steps} steps, return {total:g}")
