"""Paths of the home folder and of the machine that commands cannot read, and caches that they get as copies."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path, PurePath

KEYS = (
    ".ssh .gnupg .aws .azure .kube .docker .password-store .local/share/keyrings .local/share/kwalletd .vault-token"
    " .config/gcloud .config/gh .config/hub .config/glab-cli .config/op .config/sops .config/age .config/rclone"
    " .config/doctl .config/heroku .config/stripe .config/netlify .config/containers/auth.json .config/git/credentials"
    " .config/github-copilot .config/configstore .config/pulumi .netrc .pypirc .git-credentials .pgpass .my.cnf"
    " .mylogin.cnf .s3cfg .boto .oci .fly .databrickscfg .terraform.d/credentials.tfrc.json .terraformrc"
    " .cargo/credentials .cargo/credentials.toml .gem/credentials .huggingface/token .cache/huggingface/token"
    " .Xauthority .ICEauthority .authinfo .authinfo.gpg .msmtprc .smbcredentials .vnc .subversion/auth .kaggle"
    " .config/hcloud .config/flyctl .config/ngrok .config/anthropic .config/openai .config/Bitwarden"
    " .config/1Password .config/keepassxc .config/msmtp .config/pypoetry/auth.toml .config/composer/auth.json"
    " .composer/auth.json .m2/settings-security.xml .cloudflared .bitcoin"
    " .ethereum .electrum"
    " .local/share/com.vercel.cli .config/.wrangler .wrangler .railway .supabase .config/scw .config/nix/netrc .mc"
    " .local/share/atuin .pulumi/credentials.json .codex .claude .claude.json .gemini .copilot .snowflake"
    " .config/kwalletrc .pki"
).split()
"""Keys, tokens and passwords, relative to a home folder."""
BROWSERS = (
    ".mozilla .thunderbird .librewolf .zen .config/google-chrome .config/google-chrome-beta .config/chromium"
    " .config/BraveSoftware .config/microsoft-edge .config/vivaldi .config/opera .config/Signal .config/Slack"
    " .config/discord snap/firefox snap/chromium .var/app .cache/mozilla .cache/google-chrome .cache/chromium"
    " .cache/BraveSoftware .cache/thunderbird"
).split()
"""Profiles of browsers and chat programs, and page data that they store."""
HISTORIES = (
    ".*_history .*_hist .histfile .lesshst .viminfo .wget-hsts .zsh_sessions .local/share/fish/fish_history"
    " .local/share/nvim/shada .local/state/nvim/shada .local/state/*_history .ipython/profile_default/history.sqlite"
    " .local/share/recently-used.xbel .config/*_history .local/share/zsh/history .local/state/zsh/history"
    " .config/zsh/.zsh_history .config/zsh/.zhistory .local/state/bash/history .local/share/mcfly .zhistory"
).split()
"""Histories of shells, interpreters and editors, as patterns."""
WITH_TOKENS: Mapping[str, bytes] = {".npmrc": b"_auth", ".yarnrc.yml": b"npmAuth", ".config/pip/pip.conf": b"@"}
"""Settings that programs need, each with the text that marks a file with a token, which is then hidden."""
OF_MACHINE = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/krb5.keytab",
    "/var/lib/docker",
    "/var/lib/containerd",
)
"""Files that only the administrator may read; Marvin may run as administrator."""
RUN_BY_THEMSELVES = (
    ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .bashrc.d .profile .profile.d .zshrc .zshenv"
    " .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .logout .inputrc .xprofile .xinitrc"
    " .xsession .xsessionrc .pam_environment .oh-my-zsh .config/fish .config/zsh .config/autostart"
    " .config/autostart-scripts .config/systemd .config/environment.d .config/plasma-workspace .config/i3"
    " .config/sway .config/hypr .local/share/systemd .local/share/applications .local/share/dbus-1 .local/bin"
    " .local/lib bin Library/LaunchAgents .gitconfig .config/git .hgrc .config/hg .vimrc .vim .gvimrc .exrc"
    " .config/nvim .local/share/nvim .emacs .emacs.d .config/emacs .tmux.conf .config/tmux .screenrc .gdbinit"
    " .config/gdb .lldbinit .pdbrc .pythonstartup .ipython .jupyter .irbrc .pryrc .Rprofile .psqlrc .sqliterc"
    " .lesskey .npmrc .yarnrc .yarnrc.yml .gemrc .config/pip .pip .condarc .cargo/config .cargo/config.toml"
    " .cargo/bin .cargo/env .gradle/init.gradle .gradle/init.d .m2/settings.xml .config/Code/User"
    " .config/VSCodium/User .vscode .vscode-server .vscode-oss .cursor .pyenv .rbenv .nvm .asdf .sdkman .direnvrc"
    " .config/direnv .config/mise .config/starship.toml .forward .procmailrc .muttrc .mailcap .rhosts .shosts"
).split()
"""Files that shells, sessions and programs run or obey automatically, and program folders, below a home folder."""
CACHES = (
    ".cache .npm .cargo/registry .cargo/git go/pkg/mod .gradle/caches .m2/repository .nuget/packages .yarn"
    " .local/share/pnpm .bun/install/cache .bundle/cache .composer/cache .conda/pkgs .deno .rustup/downloads"
).split()
"""Download caches of package managers, relative to a home folder."""
CACHE_VARIABLES: Mapping[str, str] = {
    "XDG_CACHE_HOME": ".cache",
    "npm_config_cache": ".npm",
    "GOMODCACHE": "go/pkg/mod",
    "NUGET_PACKAGES": ".nuget/packages",
    "YARN_CACHE_FOLDER": ".yarn",
    "PIP_CACHE_DIR": "",
    "UV_CACHE_DIR": "",
    "GOCACHE": "",
}
"""The variables that name cache folders, each with the default path relative to the home folder."""
RUN_KEPT = (
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager/resolv.conf",
    "/run/NetworkManager/no-stub-resolv.conf",
    "/run/current-system",
    "/run/wrappers",
    "/run/opengl-driver",
    "/run/binfmt",
)
"""The parts of /run that programs need; the rest is full of sockets that lead out of the sandbox."""
TEMPORARY = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # the sandbox replaces them
"""Paths that the sandbox provides itself."""
_HOMES = 100
_SETTINGS_READ = 1_000_000
_SOCKETS_LEFT_OUT = ("/run", "/dev", "/proc", "/sys", "/var/lib/sss/pipes")
"""Paths that the sandbox provides itself, and those for looking up user names."""
_SOCKETS_LISTED = 10_000


def is_one_of(path: PurePath, names: Sequence[str]) -> bool:
    """Whether a path, relative to a home folder, is one of those paths or below one. Case is ignored."""
    text = f"{path}/".casefold()
    return any(text.startswith(f"{name}/".casefold()) for name in names)


def hidden_in(home: Path) -> Iterator[Path]:
    """The existing keys, browser profiles and histories below a home folder."""
    for name in (*KEYS, *BROWSERS):
        path = home / name
        if os.path.lexists(path):
            yield path
    for pattern in HISTORIES:
        yield from home.glob(pattern)
    for name, sign in WITH_TOKENS.items():
        if sign in beginning(home / name, _SETTINGS_READ):
            yield home / name


def beginning(path: Path, size: int) -> bytes:
    """The beginning of a file; empty if it cannot be read. A pipe is not waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, size)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def sockets() -> Iterator[Path]:
    """The sockets with a path on which programs of this machine listen, as far as the sandbox could reach them."""
    left_out = tuple(f"{place}/" for place in _SOCKETS_LEFT_OUT)
    try:
        with open("/proc/net/unix", "rb") as lines:
            listed = [line.split(maxsplit=7) for line in islice(lines, _SOCKETS_LISTED)]
    except OSError:
        return
    for path in {os.fsdecode(fields[7].rstrip(b"\n")) for fields in listed if len(fields) == 8}:
        real = os.path.realpath(path)
        if path.startswith("/") and not real.startswith(left_out) and _is_socket(real):
            yield Path(real)


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def homes(own: Path) -> Sequence[Path]:
    """The home folders that this process could read: its own, that of its user, and all of them for root."""
    found = [own, *_home_of_user(os.getuid())]
    if os.getuid() == 0:
        try:
            found += [Path("/home", name) for name in sorted(os.listdir("/home"))[:_HOMES]]
        except OSError:
            pass
    return [path for path in dict.fromkeys(found) if str(path) != "/"]


@cache  # each tool call checks a folder that may contain a home, and the system would read its list of users for each
def _home_of_user(number: int) -> tuple[Path, ...]:
    import pwd

    try:
        return (Path(pwd.getpwuid(number).pw_dir),)
    except KeyError:  # a user with only a numeric id, as in containers
        return ()
