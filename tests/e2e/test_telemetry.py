"""Traces and metrics of the real program, as a collector on loopback gets them."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from marvin_core.testing import ModelServer, answers, calls, text
from tests.e2e.support_e2e import QUICK_RETRIES, Marvin, told
from tests.support import answers_anthropic
from tests.support.agents import TOOL, AgentModels, start
from tests.support.collector import METRICS, TRACES, Collector
from tests.support.money import usage

MCP_SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"
PRICED = "prices: {qwen/qwen3-32b: {input: 1.0, output: 2.0}}\n"
KEY = "sk-the-key-itself-0123456789"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNREACHED = "Traces and metrics do not reach the collector"
pytestmark = pytest.mark.slow


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        yield server


def on(marvin: Marvin, collector: Collector | None, more: str = "", **keys: Any) -> None:
    """Switch it on; without a collector, variables say where to send to."""
    address = {} if collector is None else {"endpoint": collector.url}
    marvin.config(f"telemetry: {json.dumps({'enabled': 'on', **address, **keys})}\n{more}")


def test_a_prompt_its_requests_and_its_calls_are_a_tree_of_spans(
    marvin: Marvin, marvin_model_server: ModelServer, collector: Collector
) -> None:
    on(marvin, collector, PRICED)
    marvin_model_server.script(
        calls(("get_working_dir", {}), ("read_file", {"path": "missing.txt"}), usage=usage(10, 5)),
        text("Here.", usage=usage(20, 7)),
    )
    done = marvin.ask()
    assert (done.code, done.said) == (0, "")
    assert collector.tree() == [
        "invoke_agent marvin",
        "  chat qwen/qwen3-32b",
        "  execute_tool get_working_dir",
        "  execute_tool read_file",
        "  chat qwen/qwen3-32b",
    ]
    agent, (first, last) = collector.span("invoke_agent marvin"), collector.named("chat")
    session = {"gen_ai.conversation.id": marvin.session()[0]["id"]}
    model = {"gen_ai.provider.name": "openai-compat", "gen_ai.request.model": "qwen/qwen3-32b"}
    assert agent.attributes == {
        **session,
        **model,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "marvin",
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 12,
        "marvin.cost": pytest.approx(54e-6),
        "marvin.rounds": 2,
        "marvin.stop_reason": "done",
    }
    assert first.attributes.pop("gen_ai.response.time_to_first_chunk") <= first.seconds
    assert first.attributes == {
        **session,
        **model,
        "gen_ai.operation.name": "chat",
        "gen_ai.response.finish_reasons": ["tool_call"],
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "server.address": "127.0.0.1",
        "server.port": marvin_model_server.port,
    }
    assert last.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    tool, failed = collector.named("execute_tool")
    assert tool.attributes.pop("gen_ai.tool.call.id").startswith("call_")
    assert tool.attributes == {
        **session,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_working_dir",
        "gen_ai.tool.type": "function",
        "marvin.tool.origin": "model",
    }
    assert (tool.failed, failed.failed, failed.attributes["error.type"]) == (False, True, "tool_error")
    assert [span.kind for span in (agent, first, tool)] == ["internal", "client", "internal"]
    assert agent.resource["service.name"] == "marvin"
    assert (agent.parent_id, agent.failed) == ("", False)


def test_metrics_have_the_names_of_the_conventions(
    marvin: Marvin, marvin_model_server: ModelServer, collector: Collector
) -> None:
    on(marvin, collector, PRICED)
    marvin_model_server.script(calls(("get_working_dir", {}), usage=usage(10, 5)), text("Here.", usage=usage(20, 7)))
    assert marvin.ask().code == 0
    fed, out = sorted(collector.points("gen_ai.client.token.usage"), key=lambda at: -at.total)
    assert (fed.total, fed.count, out.total, out.count) == (30, 2, 12, 2)
    assert (fed.attributes["gen_ai.token.type"], out.attributes["gen_ai.token.type"]) == ("input", "output")
    (duration,) = collector.points("gen_ai.client.operation.duration")
    assert duration.count == 2
    assert duration.attributes["gen_ai.operation.name"] == "chat"
    assert duration.attributes["server.port"] == marvin_model_server.port
    (cost,) = collector.points("marvin.cost")
    assert cost.total == pytest.approx(54e-6)
    (tool,) = collector.points("marvin.tool.duration")
    assert (tool.count, tool.attributes) == (1, {"gen_ai.tool.name": "get_working_dir"})


def test_another_wire_has_the_name_of_its_service(
    marvin: Marvin, marvin_model_server: ModelServer, collector: Collector
) -> None:
    on(marvin, collector)
    marvin.env |= {"ANTHROPIC_BASE_URL": marvin_model_server.url.removesuffix("/v1"), "ANTHROPIC_API_KEY": KEY}
    counted = {"input_tokens": 11, "cache_read_input_tokens": 30, "output_tokens": 7}
    marvin_model_server.script(answers_anthropic.text("Hello.", usage=counted, finish="refusal"))
    marvin.ask("--provider", "anthropic", "--model", "claude-sonnet-4.6")
    (chat,) = collector.named("chat")
    assert chat.attributes["gen_ai.provider.name"] == "anthropic"
    assert chat.attributes["gen_ai.request.model"] in chat.name
    assert chat.attributes["gen_ai.response.finish_reasons"] == ["content_filter"]
    assert chat.attributes["gen_ai.usage.input_tokens"] == 41
    assert chat.attributes["gen_ai.usage.cache_read.input_tokens"] == 30


def test_each_try_is_a_span_with_what_it_failed_with(
    marvin: Marvin, marvin_model_server: ModelServer, collector: Collector
) -> None:
    on(marvin, collector, QUICK_RETRIES)
    marvin_model_server.script(answers.error(429), answers.drop(), text("At last."))
    assert marvin.ask().code == 0
    limited, broken, answered = collector.named("chat")
    assert (limited.attributes["error.type"], limited.attributes["http.response.status_code"]) == ("RateLimited", 429)
    assert (limited.failed, limited.said, broken.failed, answered.failed) == (True, "RateLimited", True, False)
    assert collector.span("invoke_agent marvin").failed is False
    kinds = {point.attributes.get("error.type", "") for point in collector.points("gen_ai.client.operation.duration")}
    assert {"RateLimited", ""} < kinds


def test_a_prompt_that_fails_says_what_it_failed_with(
    marvin: Marvin, marvin_model_server: ModelServer, collector: Collector
) -> None:
    on(marvin, collector)
    marvin_model_server.script(answers.error(401, f"the key {KEY} is wrong"))
    assert marvin.ask(env={"OPENAI_COMPAT_API_KEY": KEY}).code == 1
    agent, (chat,) = collector.span("invoke_agent marvin"), collector.named("chat")
    assert (agent.attributes["error.type"], agent.attributes["marvin.stop_reason"]) == ("AuthFailed", "error")
    assert (chat.attributes["error.type"], chat.attributes["http.response.status_code"]) == ("AuthFailed", 401)
    assert KEY.encode() not in collector.bytes()


def test_what_is_cancelled_says_so(marvin: Marvin, marvin_model_server: ModelServer, collector: Collector) -> None:
    on(marvin, collector)
    marvin.env["MARVIN_SANDBOX"] = "off"
    marvin_model_server.script(calls(("run_command", {"command": "echo $$ >> pids; sleep 300"})))
    running = marvin.ask_in_background("--on-ask", "allow-all")
    running.until(marvin.pids, "the command to run")
    running.send(signal.SIGINT)
    assert running.finish().code == 130
    for name in ("execute_tool run_command", "invoke_agent marvin"):
        span = collector.span(name)
        assert (span.failed, span.attributes["error.type"]) == (True, "cancelled")


def test_nothing_is_sent_where_nobody_switched_it_on(
    marvin: Marvin, marvin_model_server: ModelServer, collector: Collector
) -> None:
    """The variables of OpenTelemetry are set for other programs, too."""
    marvin.env |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "TRACEPARENT": PARENT}
    marvin_model_server.script(text("One."), text("Two."))
    assert marvin.ask().code == 0
    on(marvin, None)
    assert marvin.ask(env={"OTEL_SDK_DISABLED": "true"}).code == 0
    assert collector.requests == []


def test_the_standard_variables_count(marvin: Marvin, marvin_model_server: ModelServer, collector: Collector) -> None:
    """And no program that the model starts gets the keys of the collector; nor does the model."""
    marvin.config("telemetry: {enabled: true, endpoint: 'http://127.0.0.1:9'}\n")
    marvin.env |= {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": f"api-key={KEY}",
        "OTEL_SERVICE_NAME": "our-marvin",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
        "MARVIN_SANDBOX": "off",
    }
    look = {"command": "env | grep -c api-key; echo $TRACEPARENT; printf 'sk-the-key-itself'; echo -0123456789"}
    marvin_model_server.script(calls(("run_command", look)), text("Done."))
    assert UNREACHED not in marvin.ask("--on-ask", "allow-all").said
    tool = collector.span("execute_tool run_command")
    assert {request.headers["api-key"] for request in collector.requests} == {KEY}
    assert tool.resource["service.name"] == "our-marvin"
    assert tool.resource["deployment.environment.name"] == "test"
    (output,) = told(marvin_model_server)
    assert output.startswith(f"0\n00-{tool.trace_id}-{tool.id}-01\n")
    assert KEY not in output


def test_the_spans_stand_below_those_of_whoever_starts_it(
    marvin: Marvin, marvin_model_server: ModelServer, collector: Collector
) -> None:
    on(marvin, collector)
    marvin_model_server.script(text("One."), text("Two."))
    marvin.ask(env={"TRACEPARENT": PARENT})
    agent = collector.span("invoke_agent marvin")
    assert (agent.trace_id, agent.parent_id) == tuple(PARENT.split("-")[1:3])
    before = len(collector.sent(TRACES))
    marvin.ask(env={"TRACEPARENT": PARENT[:-1] + "0"})  # which nobody keeps
    assert len(collector.sent(TRACES)) == before
    assert sum(point.count for point in collector.points("gen_ai.client.operation.duration")) == 2


def test_agents_are_part_of_the_call_that_starts_them(
    tmp_path: Path, models: AgentModels, warm_cache: Path, collector: Collector
) -> None:
    """Two side by side: each stands below its own call."""
    marvin = Marvin(tmp_path, models, warm_cache)
    on(marvin, None)
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_HEADERS": f"api-key={KEY}"}
    marvin.env |= {"MARVIN_SANDBOX": "off", **variables}
    (marvin.config_folder / "tools").mkdir()
    (marvin.config_folder / "tools" / "agents_for_tests.py").write_text(TOOL)
    both = start("First part.", read_only=True), start("Second part.", read_only=True)
    models.scripts |= {
        "Do": deque([calls(*both), text("Both are done.")]),
        "First": deque([text("The first part.")]),
        "Second": deque([calls(("get_working_dir", {})), text("The second part.")]),
    }
    assert marvin.ask("--on-ask", "allow-all").code == 0
    tree = collector.tree()
    assert tree.count("    invoke_agent marvin") == 2, tree
    assert tree.count("      execute_tool get_working_dir") == 1
    assert len({span.trace_id for span in collector.spans}) == 1
    starts = collector.named("execute_tool start_agent")
    assert {span.parent_id for span in collector.named("invoke_agent") if span.parent_id} == {one.id for one in starts}
    assert {request.headers["api-key"] for request in collector.requests} == {KEY}


@pytest.mark.parametrize("content", [False, True])
def test_what_is_said_is_sent_only_by_setting_and_without_secrets(
    marvin: Marvin, marvin_model_server: ModelServer, collector: Collector, content: bool
) -> None:
    on(marvin, collector, content="on" if content else "off", longest=300)
    marvin.env["OPENAI_COMPAT_API_KEY"] = KEY
    (marvin.project / "notes.txt").write_text(f"token: ghp_{'a1B2' * 9}\nthe result\n" + "long " * 2_000)
    marvin_model_server.script(
        calls(("read_file", {"path": "notes.txt"}), text=f"I look; my key is {KEY}."), text("The answer.")
    )
    assert marvin.ask(prompt=f"The prompt with {KEY}.").code == 0
    sent = collector.bytes()
    assert KEY.encode() not in sent
    assert b"ghp_" not in sent
    said = (b"The prompt", b"notes.txt", b"the result", b"I look", b"The answer")
    assert [one in sent for one in said] == [content] * len(said)
    if not content:
        return
    tool, (first, last) = collector.span("execute_tool read_file"), collector.named("chat")
    assert json.loads(tool.attributes["gen_ai.tool.call.arguments"])["path"] == "notes.txt"
    assert len(tool.attributes["gen_ai.tool.call.result"]) == 301
    asked = json.loads(last.attributes["gen_ai.input.messages"])
    assert [one["role"] for one in asked] == ["user", "assistant", "tool"]
    (answer,) = json.loads(first.attributes["gen_ai.output.messages"])
    assert [part["type"] for part in answer["parts"]] == ["text", "tool_call"]
    assert answer["finish_reason"] == "tool_call"
    agent = collector.span("invoke_agent marvin")
    assert "The answer." in agent.attributes["gen_ai.output.messages"]


@pytest.mark.parametrize("kind", ["hangs", "refuses", "fails"])
def test_a_collector_that_takes_nothing_costs_a_line_and_a_second(
    marvin: Marvin, marvin_model_server: ModelServer, kind: str
) -> None:
    with Collector(hangs=kind == "hangs", status=503 if kind == "fails" else 200) as collector:
        address = "http://127.0.0.1:9" if kind == "refuses" else collector.url
        on(marvin, None, endpoint=f"{address.replace('//', f'//somebody:{KEY}@')}/?key={KEY}")
        marvin_model_server.script(*(calls(("get_working_dir", {})) for _ in range(5)), text("Done."))
        running = marvin.ask_in_background("--output-format", "stream-json")
        running.until_out(b'"agent_end"')
        answered = time.monotonic()
        done = running.finish()
    assert time.monotonic() - answered < 6  # a second, and what else ends on a busy machine
    assert done.code == 0
    said = done.said.splitlines()
    assert len(said) == 1, said
    assert said[0].startswith(f"marvin: {UNREACHED} at {address}: ")
    assert KEY not in done.said


def test_a_chat_goes_on_while_a_collector_hangs(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Each prompt is answered as quickly as without; only the end waits, and not for long."""
    marvin_model_server.script(*(text(f"Answer {number}.") for number in range(20)))
    with Collector(hangs=True) as collector:
        on(marvin, collector, "timeouts: {telemetry: 0.2}\n")
        done = marvin.run("--plain", stdin=b"".join(b"prompt %d\n" % number for number in range(20)))
        assert collector.requests, "nothing was sent, so nothing was tested"
    assert "Answer 19." in done.text
    assert done.seconds < 20
    assert (done.text + done.said).count(UNREACHED) == 1


def test_a_call_by_hand_is_a_span_of_its_own(unconfigured: Marvin, collector: Collector) -> None:
    on(unconfigured, collector)
    assert unconfigured.run("tools", "call", "get_working_dir").code == 0
    assert collector.tree() == ["execute_tool get_working_dir"]
    assert collector.sent(METRICS)


def test_all_calls_of_an_mcp_server_have_the_same_span(
    marvin: Marvin, marvin_model_server: ModelServer, collector: Collector
) -> None:
    """The SDK makes the first call of a connection, and Marvin the later ones."""
    shutil.copy(MCP_SERVER, marvin.project / "server.py")
    command = {"command": sys.executable, "args": ["-S", "-P", str(marvin.project / "server.py"), "good"]}
    on(marvin, collector, f"mcp_servers: {json.dumps({'trial': command})}\n", content=True)
    add = ("trial__add", {"a": 2, "b": 40})
    act: tuple[str, dict[str, Any]] = ("trial__act", {})
    marvin_model_server.script(calls(add), calls(add, act), calls(add), text("42 it is."))
    marvin.ask("--tool-search", "off", env={"TRACEPARENT": PARENT})
    spans = collector.named("execute_tool trial__add")
    assert len({span.attributes.pop("gen_ai.tool.call.id") for span in spans}) == 3
    assert [span.attributes for span in spans] == [spans[0].attributes] * 3
    assert spans[0].attributes["gen_ai.tool.call.result"] == "42"
    assert {(span.parent_id, span.kind, span.failed) for span in spans} == {
        (collector.span("invoke_agent marvin").id, "internal", False)
    }
    assert collector.span("execute_tool trial__act").failed
