"""Checks a running `starling serve` with the official client: `python tests/serve/load.py URL`.

Needs the package `openai`. Eight clients at once: short and long, streamed and whole answers, and
some that go away. Prints the time of each client and of the queue; fails if an answer is lost, or if
the slowest client takes more than twice the mean.
"""

import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from openai import BadRequestError, NotFoundError, OpenAI

CLIENTS = 8
TOKENS = 12


def one_client(client: OpenAI, model: str, number: int) -> float:
    began = time.monotonic()
    context = "x = 1\n" * (40 if number % 4 == 3 else 1)
    messages = [{"role": "user", "content": f"{context}Count from {number}."}]
    asked = {"model": model, "messages": messages, "max_tokens": TOKENS, "temperature": 0}
    if number % 2:
        usage = None
        for chunk in client.chat.completions.create(
            stream=True, stream_options={"include_usage": True}, **asked
        ):
            usage = chunk.usage or usage
        assert usage and usage.completion_tokens > 0
    else:
        reply = client.chat.completions.create(**asked)
        assert reply.choices[0].message.content and reply.usage
    # A client that goes away in the middle.
    stream = client.chat.completions.create(stream=True, **{**asked, "max_tokens": 400})
    next(iter(stream))
    stream.close()
    return time.monotonic() - began


def main() -> None:
    url = sys.argv[1]
    client = OpenAI(base_url=url, api_key="none", max_retries=0, timeout=600)
    model = client.models.list().data[0].id
    for wrong, error in [({"n": 2}, BadRequestError), ({"model": "other"}, NotFoundError)]:
        try:
            client.chat.completions.create(
                **{"model": model, "messages": [{"role": "user", "content": "x"}], **wrong}
            )
            raise SystemExit(f"{wrong} was accepted")
        except error as refused:
            print("refused:", refused.message)
    filled = client.completions.create(
        model=model, prompt="def add(a, b):\n    return ", suffix="\n\nadd(1, 2)\n", max_tokens=8, temperature=0
    )
    print("filled:", repr(filled.choices[0].text))
    with ThreadPoolExecutor(CLIENTS) as pool:
        times = list(pool.map(lambda number: one_client(client, model, number), range(CLIENTS)))
    mean = sum(times) / len(times)
    print("seconds of each client:", " ".join(f"{one:.1f}" for one in times))
    print(f"mean {mean:.1f} s, slowest {max(times) / mean:.2f} times the mean")
    time.sleep(1)
    metrics = urllib.request.urlopen(url.removesuffix("/v1") + "/metrics").read().decode()
    print("\n".join(line for line in metrics.splitlines() if not line.startswith("#")))
    assert "starling_requests_running 0" in metrics and "starling_requests_waiting 0" in metrics
    assert max(times) <= 2 * mean


main()
