"""The baseline chat: prompt_toolkit's line editor, and answers printed above it line by line; nothing else.

python bare_prompt.py                         a prompt, and no more
python bare_prompt.py BASE_URL                a chat that can be typed in while an answer comes in
"""

from __future__ import annotations

import sys

from prompt_toolkit import PromptSession

sys.modules["httpx._main"] = None  # type: ignore[assignment]  # as bare.py has it


async def answer(base_url: str, prompt: str) -> None:
    """Stream an answer; each line is printed when it is complete."""
    import json

    import httpx

    body = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": prompt}]}
    line = ""
    async with httpx.AsyncClient() as client, client.stream("POST", f"{base_url}/chat/completions", json=body) as got:
        async for event in got.aiter_lines():
            if event.startswith("data: ") and event != "data: [DONE]":
                for choice in json.loads(event[6:])["choices"]:
                    *complete, line = (line + choice["delta"].get("content", "")).split("\n")
                    for each in complete:
                        print(each)
    if line:
        print(line)


async def chat(base_url: str) -> None:
    """Read lines, answer them, until the input ends."""
    import asyncio

    from prompt_toolkit.patch_stdout import patch_stdout

    session: PromptSession[str] = PromptSession("> ")
    answers = set()
    with patch_stdout():
        while True:
            try:
                line = await session.prompt_async()
            except EOFError:
                return
            answers.add(asyncio.ensure_future(answer(base_url, line)))


if __name__ == "__main__":
    if sys.argv[1:]:
        import asyncio

        asyncio.run(chat(sys.argv[1]))
    else:
        PromptSession("> ").prompt()
