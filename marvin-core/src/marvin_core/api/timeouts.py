"""All timeouts in seconds: time limits, grace periods, pauses before retries, polling intervals."""

from __future__ import annotations

from .record import Record


class Timeouts(Record):
    """How long things may take; `timeouts:` in config.yaml changes them. All in seconds."""

    tool: float = 60.0
    """A tool call that declares no timeout of its own."""
    search_in_order: float = 0.02
    """Frequent matches show within this time. A search then goes through the files in order and stops at the first."""
    search: float = 20.0
    """A search in files by Marvin's own program, which is used if ripgrep is missing. Then the pattern is given up."""
    preview: float = 5.0
    """Computing a call's changes of files before it is approved. Then no changes are shown."""
    command_grace: float = 5.0
    """In addition to the timeout that a call sets itself, before Marvin ends the call."""
    http: float = 30.0
    """One HTTP request of a tool, and each connection to a model service or its proxy."""
    http_patience: float = 10.0
    """The total time that a request of a tool waits if a service asks it to come back later."""
    page: float = 20.0
    """Converting one web page or document to text. Then it is read in a simpler way, or not at all."""
    browser: float = 45.0
    """Loading one page in a browser. Then what has loaded so far is used."""
    browser_settle: float = 8.0
    """The longest wait until a loaded page stops changing."""
    browser_poll: float = 0.4
    """The pause between two checks whether a loaded page still changes."""
    http_turn: float = 20.0
    """The longest wait of a request for its turn, if a service limits the number of requests."""
    notice: float = 10.0
    """The time for the ntfy server to accept a notification during a run."""
    notice_end: float = 5.0
    """The time for the remaining notifications at the end of a run."""
    model_idle: float = 180.0
    """Silence of a model service since the last piece of its answer; data that only keep the connection alive do not
    count."""
    model_idle_coding: float = 900.0
    """The same silence of a model service in coding mode."""
    probe: float = 0.15
    """The time for all local servers together to list their models, if a chat starts without a model."""
    model_list: float = 5.0
    """A short question to a model service: which models it serves after it refused one; how large a context window
    is."""
    agent_git: float = 120.0
    """One git command for the worktree of an agent."""
    answer: float = 7200.0
    """One answer of a model from its request to its end, even if it arrives steadily."""
    stream_end: float = 0.2
    """After an answer was complete: until its connection can be used for the next request."""
    connect_stagger: float = 0.25
    """Before the next address of a host is tried as well, while a connection is made."""
    keep_alive: float = 30.0
    """How long an idle connection is kept for the next request."""
    retry_backoff: tuple[float, ...] = (1.0, 2.0, 4.0)
    """The pauses before the retries of a model request. There are as many retries as pauses."""
    retry_after_limit: float = 60.0
    """The longest `retry-after` that is obeyed; a longer one ends the retries."""
    summary: float = 120.0
    """The time for a model to summarize the older messages of a conversation. Then lists replace the messages."""
    command_parse: float = 2.0
    """Parsing a shell command. Then the command counts as not understood."""
    snapshot: float = 5.0
    """A snapshot of the working directory around commands, so that they can be undone."""
    snapshot_git: float = 60.0
    """One git command for a snapshot, and for undoing commands."""
    output_tail: float = 0.5
    """How long output may continue after its program has ended."""
    output_first: float = 1.0
    """How long a program runs before its output is reported."""
    output_report: float = 0.05
    """The pause between two reports of a running program's output."""
    job_poll: float = 0.1
    """The pause between two checks of a job whose end or output is awaited."""
    settle: float = 0.05
    """How long processes that a command started may run after its output has ended, before they count as a job."""
    interrupt: float = 3.0
    """After the cancellation of a commit: for its hooks to restore what they put aside, as on Ctrl+C (SIGINT)."""
    terminate: float = 0.5
    """The pause between asking processes to end (SIGTERM) and killing those that did not."""
    kill_poll: float = 0.01
    """The pause between two checks whether killed processes have ended."""
    kill_limit: float = 5.0
    """The longest wait for killed processes."""
    process_backoff: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
    """The pauses before starting a program is tried again, if the system has no room for another process."""
    sandbox_start: float = 10.0
    """The time for a sandbox to start, and for each test in one."""
    server: float = 60.0
    """The time for an MCP server to be ready."""
    pack: float = 10.0
    """Loading one pack, and each of its registration hooks."""
    pack_grace: float = 1.0
    """In addition to `pack`: for a pack that hangs and lets no other code run. Then its process is killed."""
    pack_process: float = 30.0
    """The time for the process that loads packs to start."""
    pack_retry: float = 60.0
    """Before a pack that could not be loaded is tried again. Each further try waits twice as long."""
    pack_retry_most: float = 86_400.0
    """The longest time before such a pack is tried again."""
    pack_check: float = 600.0
    """Each of the two parts of `marvin packs check` for one pack."""
    pack_call: float = 5.0
    """One call by `marvin packs check`, before it is cancelled; then for it to end."""
    pack_beat: float = 1.0
    """How long a tool may block the whole program, as measured by `marvin packs check`."""
    hook_decision: float = 5.0
    """A `before_tool` hook. Then the call is denied."""
    hook: float = 2.0
    """Any other hook. Then it is logged and skipped."""
    stall: float = 1.0
    """How long a pack's code may block the event loop before it is named."""
    held: float = 120.0
    """How long a pack's code may block the event loop before it is interrupted (a hook: `hook_decision`). No other
    timeout works meanwhile."""
    release: float = 0.4
    """After a signal that asks Marvin to exit: for such code to return, and once more for it to save its data."""
    lock: float = 5.0
    """The longest wait for the lock of a state file."""
    project_lock: float = 1.0
    """The longest wait for the lock of a file of the project that another Marvin process is writing."""
    lock_poll: float = 0.01
    """The pause between two attempts to get such a lock."""
    ticket_plugin: float = 1.0
    """The time for a plugin of the ticket program to describe itself, if its first lines do not."""
    ceiling: float = 900.0
    """With a cost ceiling: until money becomes available that is reserved for requests of other agents."""
    ceiling_poll: float = 0.2
    """The pause between two checks whether reserved money has become available."""
    redraw: float = 0.03
    """The pause between two updates of the chat's screen while an answer arrives."""
    answer_key: float = 0.5
    """Since the last key before a question that a single key answers: earlier keys were typed before it appeared."""
    escape: float = 0.1
    """After the Escape byte: for the rest of a key sequence, which slow connections split. Then it was the Escape
    key."""
    attention: float = 10.0
    """Without a key, before a chat asks for attention: at a question, and at the end of a longer answer."""
    tick: float = 1.0
    """The pause between two updates of the seconds that a waiting chat shows."""
    progress: float = 2.0
    """The pause between two progress lines of one call, if the lines are written one below the other."""
    runtime_start: float = 60.0
    """The time for the program behind a model service to start, such as Copilot's."""
    runtime_poll: float = 1.0
    """The pause between two checks whether that program still runs while it is silent."""
    agent_build: float = 3600.0
    """An agent that writes, from its start to its end."""
    agent_research: float = 600.0
    """An agent that only reads."""
    agent_slot: float = 0.2
    """The pause between two checks whether another agent may start, as long as too many of the run are working."""
    agent_end: float = 3.0
    """The time for an agent that was told to stop, for example by Ctrl+C, to stop its own processes. Then all are
    killed."""
    login: float = 300.0
    """The time for the user to log in to a model service in the browser."""
    keyring: float = 20.0
    """The time for the system's keyring to read or store a key; it may ask the user to unlock it."""
    stdin_idle: float = 60.0
    """Silence of standard input while the prompt is read from it."""
    telemetry: float = 1.0
    """At the end of a session, for the collector to receive the remaining traces and metrics."""
    close: float = 5.0
    """The end of a session: releasing resources, closing connections, stopping jobs."""
