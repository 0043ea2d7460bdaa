"""The allow rule to offer for calls like an approved one: narrow, or none."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .readings import Part

_NAME = re.compile(r"[a-z][\w.+-]*")
_WORD = re.compile(r"[a-z][\w:.-]*")
_SUB_COMMANDS = frozenset(
    "git gh npm pnpm yarn cargo go pip pip3 uv poetry docker kubectl make just task apt brew systemctl dotnet gradle "
    "mvn terraform helm bundle rake mix composer tk marvin hg svn ruff".split()
)
"""Programs whose first operand is a sub-command."""
_NEVER = re.compile(
    r"(ba|z|da|k|mk|a|fi|rba)?sh|(python|pypy)[\d.]*|perl|ruby|node|nodejs|php|lua|deno|bun|tclsh|osascript|g?awk|sed"
    r"|env|sudo|doas|su|runuser|pkexec|exec|eval|source|trap|command|builtin|xargs|find|fd|parallel|watch|ssh|scp|rsync"
    r"|rm|srm|rmdir|unlink|shred|dd|mv|cp|ln|tee|chmod|chown|chgrp|mkfs.*|mount|umount|kill|pkill|killall"
    r"|curl|wget|nc|ncat|socat|telnet|ftp|sftp|busybox|chroot|unshare|nsenter|crontab|at|export|alias|set|npx|bunx|uvx"
    r"|timeout|nice|nohup|time|stdbuf|setsid|flock|script|strace|gdb|tmux|screen|vi|vim|nano|emacs|less|more|man|openssl|gpg"
    r"|sqlite3|psql|mysql|mariadb|mongosh|redis-cli|ed|ex|ip"
)
_NEVER_BEHIND = {
    "git": "config|submodule|bisect|rebase|filter-branch|difftool|mergetool|clean|reset|push|rm|help|daemon|instaweb",
    "npm": "exec|x|publish|unpublish|config|login|token|explore",
    "pnpm": "dlx|exec|publish",
    "yarn": "dlx|exec|publish",
    "uv": "run|tool|publish",
    "poetry": "run|publish|shell",
    "cargo": "publish|login|yank|install",
    "docker": "run|exec|compose|rm|system|cp|login",
    "kubectl": "exec|delete|run|cp|apply",
    "gh": "api|auth|alias|secret|extension|repo",
    "bundle": "exec",
    "go": "run|generate|env",
}


def command_rule(tool: str, parts: Sequence[Part]) -> str:
    """A rule for the single part of a command that none matches; empty if there are several, or no rule is narrow."""
    if len(parts) != 1:
        return ""
    words = parts[0].line.split(" ")
    name = words[0]
    if not _NAME.fullmatch(name) or _NEVER.fullmatch(name) or any(map(_is_sign, parts[0].line)):
        return ""
    kept = [name]
    if name in _SUB_COMMANDS:
        if len(words) < 2 or not _WORD.fullmatch(words[1]) or re.fullmatch(_NEVER_BEHIND.get(name, ""), words[1]):
            return ""
        kept.append(words[1])
        if words[1] == "run":
            if len(words) < 3 or not _WORD.fullmatch(words[2]):
                return ""
            kept.append(words[2])
    return f"{tool}({' '.join(kept)} *)"


def path_rule(tool: str, path: str) -> str:
    """A rule for a file's folder below the working directory, or for the file alone if that is its folder."""
    folder, slash, name = path.rpartition("/")
    if path.startswith(("/", "~", "..")) or "/.." in path or set(path) & set("*?[()") or not path.isprintable():
        return ""
    return f"{tool}({folder}/*)" if slash else f"{tool}({name})"


def _is_sign(char: str) -> bool:
    """Whether there is a shell operator at this position, such as one of a redirection."""
    return "\ue008" <= char <= "\ue00f"
