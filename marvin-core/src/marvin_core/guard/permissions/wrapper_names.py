"""Commands that run another command: their names and options."""

from __future__ import annotations

from collections.abc import Mapping

from .options import Options

WRAPPERS: Mapping[str, Options] = {
    "sudo": Options(
        "aCDghpRrTtUu",
        "AbBEeHiKklnNPSsVv",
        "askpass background bell edit login list non-interactive preserve-env preserve-groups stdin shell set-home "
        "validate remove-timestamp reset-timestamp close-from= chdir= group= host= prompt= chroot= role= type= "
        "command-timeout= other-user= user= auth-type=",
    ),
    "doas": Options("aCu", "Lns"),
    "pkexec": Options("u", "", "disable-internal-agent keep-cwd user="),
    "env": Options(
        "aCPSu",
        "i0v",
        "ignore-environment null debug unset= chdir= split-string= argv0= block-signal default-signal ignore-signal "
        "list-signal-handling",
    ),
    "nice": Options("n", "0123456789", "adjustment="),
    "ionice": Options("cnpPu", "t", "class= classdata= pid= pgid= uid= ignore"),
    "chrt": Options("TPD", "abdefiormpvR", "all-tasks batch deadline fifo idle other rr reset-on-fork", operands=1),
    "taskset": Options("", "acp", "all-tasks cpu-list pid", operands=1),
    "time": Options("fo", "apqvV", "format= output= append portability quiet verbose"),
    "timeout": Options("ks", "fpv", "kill-after= signal= foreground preserve-status verbose", operands=1),
    "exec": Options("a", "cl"),
    "command": Options("", "p"),
    "builtin": Options(),
    "nohup": Options(),
    "setsid": Options("", "cfw", "ctty fork wait"),
    "stdbuf": Options("ioe", "", "input= output= error="),
    "chroot": Options("", "", "groups= userspec= skip-chdir", operands=1),
    "unshare": Options(
        "SGRw",
        "mupinrUCTcf",
        "mount uts ipc net pid user cgroup time fork map-root-user map-current-user mount-proc root= wd= "
        "setuid= setgid=",
    ),
    "strace": Options("aeoOpPsSuUEXbI", "cCdDfFhiknNqrtTvVwxyYzZ", "output= trace= follow-forks env= string-limit="),
    "ltrace": Options("aAeDlnopsuwxF", "bcCfhiLrStTV", "output="),
    "xvfb-run": Options("efnpsw", "al", "auto-servernum auto-display error-file= auth-file= server-num= server-args="),
    "dbus-run-session": Options("", "", "dbus-daemon= config-file="),
    "chronic": Options("", "ve"),
    "caffeinate": Options("tw", "dimsu"),
    "jobs": Options("", "x"),
    "busybox": Options(),
    "toybox": Options(),
}
TRANSPARENT = frozenset("timeout nice nohup time stdbuf ionice command builtin xargs env".split())
"""Wrappers that do not change the effect of the command that they run; they need no allow rule of their own."""
LOOSE = frozenset(
    "nsenter firejail bwrap proot systemd-run run0 setpriv capsh fakeroot unbuffer rlwrap gosu su-exec tini dumb-init "
    "ssh-agent logsave choom start-stop-daemon "
    "setarch linux32 linux64 numactl prlimit cgexec torsocks proxychains proxychains4 eatmydata valgrind gdb perf "
    "fd fdfind x86_64 i386 i486 i586 i686 uname26 ifne zrun pee mispipe lckdo cpulimit trickle tsocks "
    "watchexec nix-shell hyperfine entr npx bunx uvx pipx socat nodemon tmux screen catchsegv faketime runcon "
    "dtach setuidgid".split()
)
RUNNERS = frozenset(
    f"{program} run" for program in "uv poetry pipenv pdm rye hatch conda mamba nix pixi".split()
) | frozenset(f"{program} exec" for program in "bundle mise direnv npm pnpm yarn rbenv".split())
