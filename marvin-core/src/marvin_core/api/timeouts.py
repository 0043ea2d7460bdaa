"""Every wait of Marvin, in seconds: time-outs, grace periods, back-offs, polls."""

from __future__ import annotations

from .record import Record


class Timeouts(Record):
    """How long things may take; `timeouts:` in config.yaml changes them. All in seconds."""

    tool: float = 60.0
    """A tool call that declares no time-out of its own."""
    search_in_order: float = 0.02
    """Frequent matches show within this time. A search then goes through the files in order and stops at the first."""
    search: float = 20.0
    """A search in files by Marvin's own program, where ripgrep is missing; longer, and the pattern is given up."""
    preview: float = 5.0
    """Computing the changes of a call in files, before it is approved; longer, and none are shown."""
    command_grace: float = 5.0
    """On top of the time-out that a call gives itself, before dispatch steps in."""
    http: float = 30.0
    """One HTTP request of a tool, and each connection to a model service, that of a proxy to it included."""
    http_patience: float = 10.0
    """The longest that a request of a tool waits where a service asks it to come back later, in all."""
    page: float = 20.0
    """Making text of one web page or document that was fetched; longer, and it is read in a simpler way, or not."""
    browser: float = 45.0
    """A browser's loading of one page; longer, and what has come by then is taken."""
    browser_settle: float = 8.0
    """The longest wait for a page that is loaded to stop changing."""
    browser_poll: float = 0.4
    """Between two checks whether it has."""
    http_turn: float = 20.0
    """The longest that a request waits for its turn at a service that takes only so many."""
    notice: float = 10.0
    """For the ntfy server to accept a notification during a run."""
    notice_end: float = 5.0
    """At the end of a run, for the notifications that are still to be published."""
    model_idle: float = 180.0
    """Silence of a model service, counted from the last piece of its answer; what keeps a connection alive is none."""
    model_idle_coding: float = 900.0
    """The same in coding mode."""
    probe: float = 0.15
    """For all local servers together to say which models they have, before a chat begins that has no model."""
    model_list: float = 5.0
    """For a small question to a model service: what it serves, after it refused a model; how large a window is."""
    agent_git: float = 120.0
    """One step of git for the worktree of an agent."""
    answer: float = 7200.0
    """One answer of a model from its request to its end, however much of it comes."""
    stream_end: float = 0.2
    """After an answer said that it is complete, for its connection to become free for the next request."""
    connect_stagger: float = 0.25
    """The head start of each address of a host over the next one, while a connection is made."""
    keep_alive: float = 30.0
    """How long an idle connection is kept for the next request."""
    retry_backoff: tuple[float, ...] = (1.0, 2.0, 4.0)
    """The pauses before the retries of a model request; their number is the number of retries."""
    retry_after_limit: float = 60.0
    """The longest `retry-after` that is waited for; a longer one ends the retries."""
    summary: float = 120.0
    """For a model to summarise the older messages of a conversation; after that, they are replaced by lists."""
    command_parse: float = 2.0
    """For the parser to parse a shell command; after that the command counts as not understood."""
    snapshot: float = 5.0
    """A snapshot of the working directory around commands, so that they can be undone."""
    snapshot_git: float = 60.0
    """One step of git for a snapshot, and for undoing commands."""
    output_tail: float = 0.5
    """How long output may go on after its program has ended."""
    output_first: float = 1.0
    """How long a program runs before what it prints is reported: what is quick needs no reports."""
    output_report: float = 0.05
    """Between two reports of what a program printed while it runs."""
    job_poll: float = 0.1
    """Between two checks of a job whose end or output is awaited."""
    settle: float = 0.05
    """How long what a command started may take to go once its output has ended, before it counts as a job."""
    terminate: float = 0.5
    """Between asking processes to end (SIGTERM) and killing those that did not."""
    kill_poll: float = 0.01
    """Between two checks whether killed processes have ended."""
    kill_limit: float = 5.0
    """How long killed processes are waited for at most."""
    process_backoff: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
    """The pauses before a program is started once more, where the system has no room for one more process."""
    sandbox_start: float = 10.0
    """For a sandbox to start, and for each thing that is tried in one."""
    server: float = 60.0
    """For an MCP server to be ready."""
    pack: float = 10.0
    """The loading of one pack, and each of its registration hooks."""
    pack_grace: float = 1.0
    """Beyond `pack`, for a pack that hangs without letting anything else run, before its process is ended."""
    pack_process: float = 30.0
    """For the process that loads packs to start."""
    pack_retry: float = 60.0
    """Before a pack that could not be loaded is tried again. Each further try waits twice as long."""
    pack_retry_most: float = 86_400.0
    """The longest time before such a pack is tried again."""
    pack_check: float = 600.0
    """Each of the two parts of `marvin packs check`, for one pack."""
    pack_call: float = 5.0
    """One call that `marvin packs check` makes, before it is cancelled, and then for it to end."""
    pack_beat: float = 1.0
    """How long a tool may hold up the whole program, as `marvin packs check` measures it."""
    hook_decision: float = 5.0
    """A `before_tool` hook; longer is a denial."""
    hook: float = 2.0
    """Any other hook; longer is logged and skipped."""
    stall: float = 1.0
    """Code of a pack that holds the event loop for longer is named."""
    held: float = 120.0
    """Such code is interrupted after this time, that of a hook after `hook_decision`: no time-out works meanwhile."""
    release: float = 0.4
    """After a signal that asks to end: for such code to let go, and once more for it to save before leaving."""
    lock: float = 5.0
    """For the lock of a state file."""
    project_lock: float = 1.0
    """For the lock of a file of the project that another Marvin writes at the moment."""
    lock_poll: float = 0.01
    """Between two tries for such a lock."""
    ticket_plugin: float = 1.0
    """For a plugin of the ticket program to say what it does, where its first lines do not."""
    ceiling: float = 900.0
    """Under a cost ceiling: for money that requests of other agents hold to come free."""
    ceiling_poll: float = 0.2
    """Between two looks at whether it did."""
    redraw: float = 0.03
    """Between two updates of what a chat shows while an answer comes in."""
    answer_key: float = 0.5
    """After the last key, before a single key answers a question, so that keys typed as it appears do not count."""
    escape: float = 0.1
    """After Escape: for the rest of a key to come, which slow connections deliver in pieces. Then it was Escape."""
    attention: float = 10.0
    """Without a key, before a chat asks for attention: at a question, and at the end of an answer that took longer."""
    tick: float = 1.0
    """Between two updates of the seconds that a chat shows while it waits."""
    progress: float = 2.0
    """Between two lines of progress of one call, where lines are written one below the other."""
    runtime_start: float = 60.0
    """For the program through which a model service works, as Copilot's, to start."""
    runtime_poll: float = 1.0
    """Between two looks at whether that program, while it is silent, still runs."""
    agent_build: float = 3600.0
    """An agent that writes, from its start to its end."""
    agent_research: float = 600.0
    """An agent that only reads."""
    agent_slot: float = 0.2
    """Between two checks whether one more agent may work while others of the run do."""
    agent_end: float = 3.0
    """For an agent that was told to stop, as by Ctrl+C, to stop its own processes; after that, all are killed."""
    login: float = 300.0
    """For the user to log in to a model service in the browser."""
    keyring: float = 20.0
    """For the system's keyring to give or take a key; it may ask the user to unlock it."""
    stdin_idle: float = 60.0
    """Silence of standard input while the prompt is read from it."""
    telemetry: float = 1.0
    """At the end of a session, for the collector to take the traces and metrics that are left."""
    close: float = 5.0
    """The end of a session: resources, connections, jobs."""
